// Names of the retry table and its parts in the kernel.

export const RETRY_TABLE = 'kube-proxy-retry'

export const SETS = {
  /** Has elements while the proxy runs: see {@link ALIVE_MS}. */
  alive: 'alive',
  /** The frontends of service ports with connect retry. */
  frontends: 'frontends',
  /** Connections that had one retry. */
  once: 'retried-once',
  twice: 'retried-twice',
  /** ipvs: resets that rules behind IPVS drop, since IPVS itself has to see them. */
  doomed: 'doomed-resets',
} as const

export const CHAINS = {
  prerouting: 'arriving',
  output: 'sent-here',
  unsettled: 'unsettled',
  refused: 'refused',
  unreachable: 'unreachable',
  silent: 'silent',
  forward: 'behind-ipvs-forward',
  input: 'behind-ipvs-input',
} as const

/** How long the kernel goes on dropping resets after the last renewal. */
export const ALIVE_MS = 6000
/** How often the proxy renews the elements of `alive`. */
export const RENEW_MS = 2000

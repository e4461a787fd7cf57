// What the table of retries and its parts are called in the kernel.

export const RETRY_TABLE = 'kube-proxy-retry'

export const SETS = {
  /** There while the program is: see {@link ALIVE_MS}. */
  alive: 'alive',
  /** What clients dial, of the service ports whose connections are tried again. */
  frontends: 'frontends',
  /** Connections that have been tried again once. */
  once: 'retried-once',
  twice: 'retried-twice',
  /** ipvs: resets that IPVS is still to see before they are dropped. */
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

/** How long the kernel goes on dropping resets when the program is not heard of any more. */
export const ALIVE_MS = 6000
/** The program is heard of this often. */
export const RENEW_MS = 2000

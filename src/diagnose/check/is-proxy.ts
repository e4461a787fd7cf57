// Whether a process is a kube-proxy, by its command line.

/** What node may run of ours: a checkout file by file, the bundle of a checkout or a release, a program without an ending. */
const OURS = /\/dist\/src\/cli\/main\.js$|\/kube-proxy(\.cjs)?$/

/** Options of node before the program. */
const MOST_OPTIONS = 8

/** `/usr/local/bin/kube-proxy --config=...`, or ours, which node runs. Words such as `check` or `sandbox` are no proxy. */
export function isProxy(command: readonly string[]): boolean {
  const program = command[0] ?? ''
  const ours = command.slice(1, MOST_OPTIONS).findIndex((part) => OURS.test(part)) + 1
  const at = /(^|\/)kube-proxy$/.test(program) ? 0 : /(^|\/)node$/.test(program) && ours > 0 ? ours : undefined
  return at !== undefined && (command[at + 1] ?? '-').startsWith('-')
}

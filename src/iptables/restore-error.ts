// Why iptables-restore refused a text.

/** iptables-restore did not do everything. Sections before the refused one may be done. */
export class RestoreError extends Error {
  override readonly name = 'RestoreError'
  /** The line that was refused, from 1; undefined when iptables does not say, or blames the end of a section. */
  readonly line: number | undefined
  /** Whose line it is. */
  readonly owner: string | undefined

  constructor(message: string, line: number | undefined, owner?: string) {
    super(message)
    this.line = line
    this.owner = owner
  }

  /** The same, knowing whose line was refused. */
  blame(owner: string | undefined): RestoreError {
    return new RestoreError(this.message, this.line, owner)
  }

  /** Whether the machine lacked something, so that the line says little. iptables-legacy never says so. */
  get isShortage(): boolean {
    return SHORTAGE.test(this.message)
  }
}

/** As strerror() and libnftnl say it: ENOMEM (twice), EMFILE and ENFILE, ENOBUFS, EAGAIN; and no netlink socket at all. */
const SHORTAGE =
  /Cannot allocate memory|Memory allocation problem|Too many open files|No buffer space available|Resource temporarily unavailable|Failed to initialize nft|Could not fetch rule set generation id/

/**
 * Whether `iptables -S CHAIN` says that there is no such chain. Its exit code is the same when there was no memory to look.
 * iptables-nft calls a chain that it does not find incompatible.
 */
export function saysNoSuchChain(stderr: string): boolean {
  return /No chain\/target\/match by that name|chain .* is incompatible/.test(stderr)
}

/**
 * Reads what iptables-restore says on its error output. For the text's own mistakes and, with iptables-nft, for what the
 * kernel refuses, it names the line. iptables-legacy hands over the whole table at once and can only name its end.
 */
export function parseRestoreError(stderr: string, text: string): RestoreError {
  const message = stderr.trim().replace(/\s*\n\s*/g, '; ')
  const line = /\bline:? (\d+)/.exec(stderr)?.[1]
  const refused = line === undefined ? undefined : text.split('\n')[Number(line) - 1]
  if (refused === undefined || refused === 'COMMIT')
    return new RestoreError(`Cannot change rules: ${message}`, undefined)
  return new RestoreError(`Cannot change rules: ${message} (${refused})`, Number(line))
}

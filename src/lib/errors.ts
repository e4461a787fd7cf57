// The errors that callers branch on. Branch on the class or a code, never on the text.

/** A field of some input that cannot be accepted, with its path as Kubernetes writes it: `ipvs.excludeCIDRs[1]`. */
export interface FieldError {
  readonly path: string
  /** What is wrong and what is allowed, without the path. */
  readonly message: string
  /** The offending value, when there is one. */
  readonly value?: unknown
  /** The line of the file that it stands on, counted from 1. */
  readonly line?: number | undefined
}

/** Flags or a configuration file that cannot be accepted. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly fields: readonly FieldError[]

  constructor(fields: readonly FieldError[], options?: ErrorOptions) {
    super(fields.map(formatFieldError).join('\n'), options)
    this.fields = fields
  }
}

/** The kernel refused an operation. */
export class KernelError extends Error {
  override readonly name = 'KernelError'
  /** What was attempted: "add element", "bind". */
  readonly op: string
  /** The errno's name: "ENOENT". */
  readonly errno: string
  /** The kernel's own explanation, when it sent one (NLMSGERR_ATTR_MSG). */
  readonly extack: string | undefined

  constructor(op: string, errno: string, extack?: string) {
    super(`Cannot ${op}: ${errno}${extack === undefined ? '' : ` (${extack})`}`)
    this.op = op
    this.errno = errno
    this.extack = extack
  }
}

/** This machine lacks something that the chosen settings need. */
export class UnsupportedError extends Error {
  override readonly name = 'UnsupportedError'
  readonly feature: string
  readonly requires: string

  constructor(feature: string, requires: string, options?: ErrorOptions) {
    super(`Cannot use ${feature}: ${requires}`, options)
    this.feature = feature
    this.requires = requires
  }
}

/** One line for a person: `ipvs.excludeCIDRs[1]: Invalid value: "x": must be a CIDR (line 12)`. */
export function formatFieldError(error: FieldError): string {
  const value = error.value === undefined ? '' : `Invalid value: ${JSON.stringify(error.value)}: `
  const line = error.line === undefined ? '' : ` (line ${error.line})`
  return `${error.path === '' ? '' : `${error.path}: `}${value}${error.message}${line}`
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

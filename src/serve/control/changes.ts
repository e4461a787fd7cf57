// The answer to the question `changes`: what the proxy changed in the kernel while a client asked, and why.

export interface ChangesAnswer {
  readonly nodeName: string
  readonly mode: string
  /** The oldest first, after the one that the client named. */
  readonly changes: readonly SyncChange[]
  /** What to ask for next: `after=N`. */
  readonly last: number
  /** How many were dropped since the client asked last, because there were too many. */
  readonly missed: number
}

/** A sync that did something, or was meant to. */
export interface SyncChange {
  /** Counts up from 1 in each process. */
  readonly number: number
  readonly family: 4 | 6
  /**
   * `event`: objects came. `compare`: all was compared with the kernel. `heal`: another program had changed the rules. `eject`: a
   * backend does not answer, or does again. `balance`: with least connections, shares moved.
   */
  readonly why: 'event' | 'compare' | 'heal' | 'eject' | 'balance'
  readonly objects: readonly ChangedObject[]
  readonly moreObjects: number
  /** Names of service ports whose decisions changed. */
  readonly ports: readonly string[]
  readonly morePorts: number
  /** When the first object was received; milliseconds since 1970, as the others. */
  readonly receivedMs?: number | undefined
  readonly beganMs: number
  /** When the kernel acknowledged, or refused. */
  readonly doneMs: number
  readonly operations: number
  readonly bytes: number
  /** As commands of the mode's own tool. */
  readonly commands: readonly string[]
  readonly moreCommands: number
  readonly error?: string | undefined
}

export interface ChangedObject {
  readonly kind: 'Service' | 'EndpointSlice' | 'Node' | 'ServiceCIDR'
  /** '' for objects without one. */
  readonly namespace: string
  readonly name: string
  readonly verb: 'set' | 'deleted'
}

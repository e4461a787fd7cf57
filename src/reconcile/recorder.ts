// Records writes to the kernel and their causes for clients: all while a client listens, and always the last comparison.

import type { ChangedObject, SyncChange } from '../serve/control/changes.ts'
import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { Applied, Attempt, NotApplied } from './applied.ts'
import { firstOf } from './write-log.ts'

export type RecordedChange = Omit<SyncChange, 'number'>
export type ChangeListener = (change: RecordedChange) => void

/** The most objects and service ports that a change names. */
const MOST_NAMES = 20
/** The most commands kept while a client listens, and without a client; each is cut off at the length below. */
const MOST_COMMANDS = 120
const FEW_COMMANDS = 8
const LONGEST_COMMAND = 400

export class Recorder {
  readonly #clock: Clock
  #listener: ChangeListener | undefined
  /** While a client listens: the objects that came since the last attempt began, and those that led to it. */
  #received: ReceivedObjects | undefined
  #attempted: ReceivedObjects | undefined
  #lastComparison: RecordedChange | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Sets the client, which is called with each write; undefined: none. */
  listen(listener: ChangeListener | undefined): void {
    this.#listener = listener
    this.#received = undefined
  }

  get isOn(): boolean {
    return this.#listener !== undefined
  }

  /** The last time that all was compared with the kernel. */
  get lastComparison(): RecordedChange | undefined {
    return this.#lastComparison
  }

  /** An object came from the API, and is not in the model yet. */
  received(object: ChangedObject): void {
    this.#received ??= new ReceivedObjects(this.#clock.monotonicNow())
    this.#received.add(object)
  }

  /** The objects that came change nothing. */
  forget(): void {
    this.#received = undefined
  }

  /** The objects that came are written now. */
  begin(): void {
    this.#attempted = this.#received
    this.#received = undefined
  }

  applied(applied: Applied): void {
    const { isComparison, changes, operations } = applied
    const describe = () =>
      this.#describe(applied, operations, firstOf(operations.commands?.() ?? [], this.#most, LONGEST_COMMAND))
    if (isComparison) this.#lastComparison = describe()
    const isWorthIt = operations.operations > 0 || this.#attempted !== undefined || changes.length > 0
    if (isWorthIt) this.#listener?.(isComparison ? this.#lastComparison! : describe())
  }

  refused(attempt: NotApplied): void {
    const change = this.#describe(attempt, { operations: 0, bytes: 0 }, [])
    this.#listener?.({ ...change, error: messageOf(attempt.error) })
  }

  get #most(): number {
    return this.isOn ? MOST_COMMANDS : FEW_COMMANDS
  }

  #describe(
    { node, cause, isComparison, changes, beganMs }: Attempt,
    { operations, bytes }: { readonly operations: number; readonly bytes: number },
    commands: readonly string[],
  ): RecordedChange {
    const clock = this.#clock
    const received = this.#attempted
    const toWall = (monotonicMs: number) => clock.now() - clock.monotonicNow() + monotonicMs
    return {
      family: node.family,
      why: cause === 'heal' ? 'heal' : received !== undefined ? 'event' : isComparison ? 'compare' : ownReason(changes),
      objects: received?.objects ?? [],
      moreObjects: received?.more ?? 0,
      ports: changes.slice(0, MOST_NAMES).map(({ name }) => name),
      morePorts: Math.max(0, changes.length - MOST_NAMES),
      receivedMs: received === undefined ? undefined : toWall(received.sinceMs),
      beganMs: toWall(beganMs),
      doneMs: clock.now(),
      operations,
      bytes,
      commands,
      moreCommands: Math.max(0, operations - commands.length),
    }
  }
}

/** No object came: shares moved, with least connections, or backends were ejected, or are back. */
function ownReason(changes: Attempt['changes']): 'balance' | 'eject' {
  const isMoved = ({ before, after }: Attempt['changes'][number]) =>
    after?.backends.balance === 'least-connections' && before?.backends.length === after.backends.length
  return changes.length > 0 && changes.every(isMoved) ? 'balance' : 'eject'
}

/** The oldest first, each once. */
class ReceivedObjects {
  readonly sinceMs: number
  readonly #objects = new Map<string, ChangedObject>()
  more = 0

  constructor(sinceMs: number) {
    this.sinceMs = sinceMs
  }

  get objects(): ChangedObject[] {
    return [...this.#objects.values()]
  }

  add(object: ChangedObject): void {
    const key = `${object.kind} ${object.namespace}/${object.name}`
    if (this.#objects.size < MOST_NAMES || this.#objects.has(key)) this.#objects.set(key, object)
    else this.more++
  }
}

// The order in which a proxy closes what it has opened.

import { closeAll } from '../lib/close-all.ts'

interface Closable {
  close(): unknown
}

interface Stoppable {
  stop(): unknown
}

/** What a proxy owns. */
export interface Belongings {
  /** Reports new addresses, which would begin syncs. */
  readonly addressWatch: Closable | undefined
  readonly rest: Stoppable
  readonly tripwire: Stoppable
  /** One for each IP family. A sync that is under way comes to its end. */
  readonly parts: readonly Stoppable[]
  readonly retry: Closable
  readonly socketBalancing: Closable | undefined
  readonly leastConnections: Closable
  readonly mode: Closable
  readonly servers: Closable
  readonly answers: Closable
  readonly source: Closable
}

/**
 * Stops event sources, then workers, then what they depend on: a sync needs the mode, and connect retry ejects through the parts.
 * Questions are answered until the mode is closed. Closes everything, also after an error; rejects with the first one.
 */
export function closeProxy(belongings: Belongings) {
  const {
    addressWatch,
    rest,
    tripwire,
    parts,
    retry,
    socketBalancing,
    leastConnections,
    mode,
    servers,
    answers,
    source,
  } = belongings
  return closeAll(
    () => addressWatch?.close(),
    () => rest.stop(),
    () => tripwire.stop(),
    ...parts.map((part) => () => part.stop()),
    () => retry.close(),
    () => socketBalancing?.close(),
    () => leastConnections.close(),
    () => mode.close(),
    () => servers.close(),
    () => answers.close(),
    () => source.close(),
  )
}

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
  /** Tells of new addresses, which would begin syncs. */
  readonly addressWatch: Closable | undefined
  readonly rest: Stoppable
  readonly tripwire: Stoppable
  /** One for each IP family. A sync that is under way comes to its end. */
  readonly parts: readonly Stoppable[]
  readonly retry: Closable
  readonly connectChoice: Closable | undefined
  readonly mode: Closable
  readonly servers: Closable
  readonly answers: Closable
  readonly source: Closable
}

/**
 * What begins work first, then the work, then what it needs: a sync needs the mode, and retries eject through the parts. Those
 * that ask are answered until the mode is closed. Whatever fails, the rest is closed; rejects with the first error.
 */
export function closeProxy(belongings: Belongings) {
  const { addressWatch, rest, tripwire, parts, retry, connectChoice, mode, servers, answers, source } = belongings
  return closeAll(
    () => addressWatch?.close(),
    () => rest.stop(),
    () => tripwire.stop(),
    ...parts.map((part) => () => part.stop()),
    () => retry.close(),
    () => connectChoice?.close(),
    () => mode.close(),
    () => servers.close(),
    () => answers.close(),
    () => source.close(),
  )
}

import { useEffect, useRef, useState } from 'preact/hooks'
import { messageOf } from '../../../lib/errors.ts'
import { shown, type Waited } from './async.ts'

/**
 * The answer to the newest request. When `about` changes, or the view is left, the request ends: a pending one would keep
 * the view in memory.
 */
export function useAnswer<Value>(
  about: string,
): readonly [answer: Waited<Value>, ask: (send: (signal: AbortSignal) => Promise<Value>) => void] {
  const [answer, setAnswer] = useState<Waited<Value>>({ state: 'none' })
  const pending = useRef<AbortController | null>(null)
  useEffect(() => {
    setAnswer({ state: 'none' })
    return () => pending.current?.abort()
  }, [about])
  const ask = (send: (signal: AbortSignal) => Promise<Value>) => {
    pending.current?.abort()
    const { signal } = (pending.current = new AbortController())
    setAnswer((before) => ({ state: 'waiting', before: shown(before) }))
    send(signal).then(
      (value) => signal.aborted || setAnswer({ state: 'here', value }),
      (error: unknown) => signal.aborted || setAnswer({ state: 'failed', error: messageOf(error) }),
    )
  }
  return [answer, ask]
}

import { useState } from 'preact/hooks'
import type { Action } from '../../protocol.ts'
import { commandFor } from '../../commands.ts'
import { act } from '../connect.ts'
import { messageOf } from '../parts/async.ts'
import { useStore } from '../store.ts'

/** A past action and its outcome. */
export interface Deed {
  readonly id: number
  readonly command: string
  readonly state: 'doing' | 'done' | 'failed'
  readonly said: string
}

let lastId = 0

/** Runs actions, and keeps the last ones. */
export function useAct(): { deeds: readonly Deed[]; doIt: (action: Action) => void } {
  const store = useStore()
  const [deeds, setDeeds] = useState<readonly Deed[]>(() => kept)
  const set = (change: (deeds: readonly Deed[]) => readonly Deed[]) =>
    setDeeds((before) => (kept = change(before).slice(0, 12)))
  const doIt = (action: Action) => {
    const id = ++lastId
    const command = commandFor(action, store.state.snapshot)
    set((before) => [{ id, command, state: 'doing', said: '' }, ...before])
    const finish = (deed: Omit<Deed, 'id'>) =>
      set((before) => before.map((each) => (each.id === id ? { id, ...deed } : each)))
    act(action).then(
      (answer) =>
        answer.ok
          ? finish({ command: answer.command, state: 'done', said: answer.did })
          : finish({ command: answer.command, state: 'failed', said: answer.error }),
      (error: unknown) => finish({ command, state: 'failed', said: messageOf(error) }),
    )
  }
  return { deeds, doIt }
}

/** Kept while another view is open. */
let kept: readonly Deed[] = []

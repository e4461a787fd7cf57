import type { Action } from '../../protocol.ts'
import { commandFor } from '../../commands.ts'
import { act } from '../connect.ts'
import { messageOf } from '../../../lib/errors.ts'
import { usePart, useStore, type Store } from '../store.ts'
import { undoOf } from './undo.ts'

/** A past action and its outcome. */
export interface Deed {
  readonly id: number
  readonly command: string
  readonly state: 'doing' | 'done' | 'failed'
  readonly said: string
  /** What takes it back; null: nothing does, or it was taken back. */
  readonly undo: Action | null
}

let lastId = 0
const MOST_DEEDS = 12

/** Runs actions, and keeps the last ones. */
export function useAct(): {
  readonly deeds: readonly Deed[]
  readonly doIt: (action: Action) => void
  readonly undo: (deed: Deed) => void
} {
  const store = useStore()
  const deeds = usePart((state) => state.deeds)
  return {
    deeds,
    doIt: (action) => run(store, action, undoOf(action, store.state.snapshot)),
    undo: ({ id, undo }) => {
      change(store, id, { undo: null })
      if (undo !== null) run(store, undo, null)
    },
  }
}

function run(store: Store, action: Action, undo: Action | null): void {
  const id = ++lastId
  const command = commandFor(action, store.state.snapshot)
  const deed: Deed = { id, command, state: 'doing', said: '', undo: null }
  store.set({ deeds: [deed, ...store.state.deeds].slice(0, MOST_DEEDS) })
  act(action).then(
    (answer) =>
      answer.ok
        ? change(store, id, { command: answer.command, state: 'done', said: answer.did, undo })
        : change(store, id, { command: answer.command, state: 'failed', said: answer.error }),
    (error: unknown) => change(store, id, { state: 'failed', said: messageOf(error) }),
  )
}

function change(store: Store, id: number, to: Partial<Deed>): void {
  store.set({ deeds: store.state.deeds.map((each) => (each.id === id ? { ...each, ...to } : each)) })
}

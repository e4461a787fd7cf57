// The state of the page. A view takes a part of it, and is drawn again when that part changes.

import { createContext } from 'preact'
import { useContext, useLayoutEffect, useState } from 'preact/hooks'
import type { Deed } from './act/use-act.ts'
import { NO_FLOW, type Flow } from './flow.ts'
import type { ChangeEntry, LoadReport, Snapshot, TrafficReport } from '../protocol.ts'

export interface PageState {
  readonly snapshot: Snapshot
  readonly traffic: TrafficReport | null
  readonly flow: Flow
  /** The newest last. */
  readonly changes: readonly ChangeEntry[]
  readonly load: LoadReport | null
  readonly connection: Connection
  /** The newest first. */
  readonly deeds: readonly Deed[]
}

export type Connection =
  | { readonly state: 'connecting' | 'live' | 'lost' }
  | { readonly state: 'ended'; readonly reason: string }

export class Store {
  #state: PageState
  readonly #listeners = new Set<() => void>()

  constructor(snapshot: Snapshot) {
    const connection = { state: 'connecting' } as const
    this.#state = { snapshot, traffic: null, flow: NO_FLOW, changes: [], load: null, connection, deeds: [] }
  }

  get state(): PageState {
    return this.#state
  }

  set(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) listener()
  }

  /** Returns a function that ends the subscription. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

export const StoreContext = createContext<Store | null>(null)

export function useStore(): Store {
  const store = useContext(StoreContext)
  if (store === null) throw new Error('Cannot draw: there is no store around this view')
  return store
}

/** A part of the state. `select` must return the same object for the same state. */
export function usePart<Part>(select: (state: PageState) => Part): Part {
  const store = useStore()
  const [part, setPart] = useState(() => select(store.state))
  useLayoutEffect(() => {
    const update = () => setPart(() => select(store.state))
    update()
    return store.subscribe(update)
    // `select` is a new but equivalent function in each call.
  }, [store])
  return part
}

export function useSnapshot(): Snapshot {
  return usePart(({ snapshot }) => snapshot)
}

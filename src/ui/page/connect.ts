// The page's connection to its server: events, requests and actions.

import {
  MOST_CHANGES,
  type ActAnswer,
  type Action,
  type ChangeEntry,
  type DoctorAnswer,
  type DoctorRequest,
  type ExplainAnswer,
  type ExplainQuestion,
  type Refusal,
  type ServiceDetail,
  type ServiceQuery,
  type Snapshot,
  type UiEvents,
} from '../protocol.ts'
import { applyPatch } from '../patch.ts'
import { addReport } from './flow.ts'
import type { Store } from './store.ts'

/** Subscribes to the server's events. The browser reconnects by itself. */
export function watchEvents(store: Store): EventSource {
  const source = new EventSource('api/events')
  const on = <Name extends keyof UiEvents>(name: Name, take: (data: UiEvents[Name]) => void) => {
    source.addEventListener(name, (event: MessageEvent<string>) => take(JSON.parse(event.data) as UiEvents[Name]))
  }
  source.addEventListener('open', () => {
    // The server sends all changes again.
    store.set({ connection: { state: 'live' }, changes: [] })
  })
  source.addEventListener('error', () => {
    if (store.state.connection.state !== 'ended') store.set({ connection: { state: 'lost' }, traffic: null })
  })
  on('snapshot', (snapshot) => store.set({ snapshot }))
  on('update', (update) => store.set({ snapshot: applyPatch(store.state.snapshot, update) as Snapshot }))
  on('traffic', (traffic) => {
    const { flow, load } = store.state
    store.set({ traffic, flow: addReport(flow, traffic, load, Date.now()) })
  })
  on('change', (change) => store.set({ changes: addChange(store.state.changes, change) }))
  on('load', (load) => store.set({ load }))
  on('end', ({ reason }) => {
    source.close()
    store.set({ connection: { state: 'ended', reason }, traffic: null })
  })
  return source
}

/** Ignores duplicates. */
function addChange(changes: readonly ChangeEntry[], change: ChangeEntry): readonly ChangeEntry[] {
  return changes.some(({ id }) => id === change.id) ? changes : [...changes, change].slice(-MOST_CHANGES)
}

export async function readService(
  { namespace, name, node }: ServiceQuery,
  signal: AbortSignal,
): Promise<ServiceDetail> {
  return receive(await fetch(`api/service?${new URLSearchParams({ namespace, name, node })}`, { signal }))
}

export async function explain(question: ExplainQuestion, signal?: AbortSignal): Promise<ExplainAnswer> {
  return receive(await post('api/explain', question, signal))
}

export async function askDoctor(question: DoctorRequest, signal: AbortSignal): Promise<DoctorAnswer> {
  return receive(await post('api/doctor', question, signal))
}

export async function act(action: Action): Promise<ActAnswer> {
  return receive(await post('api/act', action))
}

function post(path: string, body: object, signal: AbortSignal | null = null): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(path, { method: 'POST', headers, body: JSON.stringify(body), signal })
}

async function receive<Answer>(response: Response): Promise<Answer> {
  if (response.ok) return (await response.json()) as Answer
  const text = await response.text()
  throw new Error(refusalIn(text) ?? `The server answered ${response.status}`)
}

function refusalIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as Refusal
    return error
  } catch {
    return undefined
  }
}

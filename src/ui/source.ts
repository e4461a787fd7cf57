// Where the page's server has what it shows from: a sandbox, or the proxy of a node.

import type {
  Action,
  ActAnswer,
  ChangeEntry,
  ExplainAnswer,
  ExplainQuestion,
  LoadReport,
  ServiceDetail,
  ServiceQuery,
  Snapshot,
  TrafficReport,
} from './protocol.ts'

/** A question that makes no sense as it was asked; the message says why. */
export class AskedWrongly extends Error {}

export interface UiListener {
  /** A snapshot would be another one now. */
  changed(): void
  synced(change: Omit<ChangeEntry, 'id'>): void
  loaded(report: LoadReport): void
}

export interface UiSource {
  /** As it is now. */
  snapshot(): Promise<Snapshot>
  /** From now on the listener is told, and proxies count and remember, until end(). */
  begin(listener: UiListener): void
  end(): void
  /** What moved since the last time; only between begin() and end(). */
  traffic(): Promise<TrafficReport>
  service(query: ServiceQuery): Promise<ServiceDetail>
  explain(question: ExplainQuestion): Promise<ExplainAnswer>
  /** Absent: nothing can be done here. */
  act?(action: Action): Promise<ActAnswer>
  close(): void
}

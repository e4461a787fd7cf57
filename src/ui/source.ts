// The source of the page's data: a sandbox, or the proxy of a node.

import type {
  Action,
  ActAnswer,
  ChangeEntry,
  DoctorAnswer,
  DoctorRequest,
  ExplainAnswer,
  ExplainQuestion,
  LoadReport,
  ServiceDetail,
  ServiceQuery,
  Snapshot,
  TrafficReport,
} from './protocol.ts'

/** An invalid request; the message says why. */
export class AskedWrongly extends Error {}

export interface UiListener {
  /** The snapshot may have changed. */
  changed(): void
  synced(change: Omit<ChangeEntry, 'id'>): void
  loaded(report: LoadReport): void
}

export interface UiSource {
  snapshot(): Promise<Snapshot>
  /** Until end(), the listener gets events, and proxies count traffic and record changes. */
  begin(listener: UiListener): void
  end(): void
  /** The traffic since the last call; only between begin() and end(). */
  traffic(): Promise<TrafficReport>
  service(query: ServiceQuery): Promise<ServiceDetail>
  explain(question: ExplainQuestion): Promise<ExplainAnswer>
  doctor(question: DoctorRequest): Promise<DoctorAnswer>
  /** Absent: no actions. */
  act?(action: Action): Promise<ActAnswer>
  close(): void
}

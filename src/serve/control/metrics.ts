// The answer to the question `metrics`: what /metrics and /statusz say, for who may not reach those ports.

export interface MetricsAnswer {
  /** In Prometheus's text format. */
  readonly metrics: string
  /** Lines for people. */
  readonly status: string
}

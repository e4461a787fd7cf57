// The answer to the question `affinity`: which backend a client gets again, where the proxy has the affinity entries and not the kernel.

export interface AffinityAnswer {
  /** The one with the most time left first; none: the client is not remembered. */
  readonly remembered: readonly { readonly backend: string; readonly leftMs: number }[]
}

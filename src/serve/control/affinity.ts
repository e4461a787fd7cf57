// The answer to the question `affinity`: which backend a client gets again, where the proxy has the affinity entries and not the kernel.

export interface AffinityAnswer {
  /** The entry with the most time left first; empty: the client has no entry. */
  readonly remembered: readonly { readonly backend: string; readonly leftMs: number }[]
}

/** How a pod treats its clients. `hang` hears nothing, not even that a client wants to connect; `refuse` says no. */
export type Behaviour = 'serve' | 'hang' | 'refuse'

/** What runs in a pod. */
export interface PodServer {
  /** Begins to behave so. Throws when a port cannot be listened on. */
  setBehaviour(behaviour: Behaviour): void
  /** Ends all servers and connections, at once. */
  close(): void
}

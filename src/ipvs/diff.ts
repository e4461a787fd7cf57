// From virtual servers before to virtual servers after.

import {
  destinationKey,
  sameServer,
  serverKey,
  type Destination,
  type DestinationKey,
  type IpvsOp,
  type PlannedServer,
  type ServerId,
  type ServerKey,
  type ServerState,
} from './types.ts'

/** What a change asks for. Destinations that are to go are not deleted: whether they may depends on their connections. */
export interface IpvsDiff {
  readonly ops: readonly IpvsOp[]
  readonly retired: readonly Retired[]
  /** Servers without a destination for new connections: they go with the last of their retired destinations. */
  readonly emptied: readonly ServerId[]
}

/** A destination that is to take no more connections, with the weight that it has now. */
export interface Retired {
  readonly server: ServerId
  readonly destination: Destination
}

/** What is in the kernel besides what was planned: destinations that were retired earlier, and the servers that have them. */
export interface Draining {
  hasServer(server: ServerKey): boolean
  has(server: ServerKey, destination: DestinationKey): boolean
}

interface Result {
  readonly ops: IpvsOp[]
  readonly retired: Retired[]
  readonly emptied: ServerId[]
}

/**
 * The difference between two plans. A server is added with its first destination and goes with its last, which is retired;
 * one that is not planned at all any more is deleted at once.
 */
export function diffPlans(
  before: Iterable<PlannedServer>,
  after: Iterable<PlannedServer>,
  draining: Draining,
): IpvsDiff {
  const old = new Map<ServerKey, PlannedServer>()
  for (const planned of before) old.set(serverKey(planned.server), planned)
  const result: Result = { ops: [], retired: [], emptied: [] }
  for (const planned of after) {
    const key = serverKey(planned.server)
    const previous = old.get(key)
    old.delete(key)
    const present = previous !== undefined && previous.destinations.length > 0
    if (!present) addServer(planned, draining, result)
    else updateServer(planned, previous, { draining, result })
  }
  for (const [key, { server, destinations }] of old) {
    if (destinations.length > 0 || draining.hasServer(key)) result.ops.push({ op: 'deleteServer', server })
  }
  return result
}

/** The difference between the kernel and a plan. Servers that are not planned go, except those that `isForeign` spares. */
export function diffState(
  actual: Iterable<ServerState>,
  wanted: Iterable<PlannedServer>,
  isForeign: (server: ServerId) => boolean,
): IpvsDiff {
  const present = new Map<ServerKey, ServerState>()
  for (const state of actual) present.set(serverKey(state.server), state)
  const result: Result = { ops: [], retired: [], emptied: [] }
  for (const planned of wanted) {
    const key = serverKey(planned.server)
    const state = present.get(key)
    present.delete(key)
    if (state === undefined) addServer(planned, NOTHING, result)
    else if (planned.destinations.length === 0 && state.destinations.length === 0) {
      result.ops.push({ op: 'deleteServer', server: planned.server })
    } else {
      deleteForeignWays(state, result)
      const destinations = state.destinations.filter(({ isNat }) => isNat)
      updateServer(planned, { server: state.server, destinations }, { draining: NOTHING, result })
    }
  }
  for (const { server } of present.values()) {
    if (!isForeign(server)) result.ops.push({ op: 'deleteServer', server })
  }
  return result
}

const NOTHING: Draining = { hasServer: () => false, has: () => false }

function addServer({ server, destinations }: PlannedServer, draining: Draining, { ops }: Result): void {
  if (destinations.length === 0) return
  const key = serverKey(server)
  const lingers = draining.hasServer(key)
  ops.push({ op: lingers ? 'setServer' : 'addServer', server })
  for (const destination of destinations) ops.push(bringIn(server, destination, draining))
}

function updateServer(
  planned: PlannedServer,
  previous: PlannedServer,
  { draining, result }: { draining: Draining; result: Result },
): void {
  const { server, destinations } = planned
  if (destinations.length === 0) result.emptied.push(server)
  else if (!sameServer(previous.server, server)) result.ops.push({ op: 'setServer', server })
  // The model keeps lists that did not change.
  if (previous.destinations === destinations) return
  const old = new Map(previous.destinations.map((destination) => [destinationKey(destination), destination]))
  for (const destination of destinations) {
    const key = destinationKey(destination)
    const before = old.get(key)
    old.delete(key)
    if (before === undefined) result.ops.push(bringIn(server, destination, draining))
    else if (before.weight !== destination.weight) result.ops.push({ op: 'setDestination', server, destination })
  }
  for (const destination of old.values()) result.retired.push({ server, destination })
}

/** A destination that is still there, without new connections, gets its weight back. */
function bringIn(server: ServerId, destination: Destination, draining: Draining): IpvsOp {
  const isThere = draining.has(serverKey(server), destinationKey(destination))
  return { op: isThere ? 'setDestination' : 'addDestination', server, destination }
}

/** Destinations that another program made with another way of forwarding cannot be changed, only deleted and added. */
function deleteForeignWays({ server, destinations }: ServerState, { ops }: Result): void {
  for (const destination of destinations) {
    if (!destination.isNat) ops.push({ op: 'deleteDestination', server, destination })
  }
}

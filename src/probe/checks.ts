// What the test knows of the cluster, and what a check is: a connection, and what has to come of it.

import type { Family } from '../lib/ip.ts'
import type { ServiceName } from './objects.ts'
import type { Dial, Protocol } from './protocol.ts'

export interface TestNode {
  readonly name: string
  /** Internal addresses, the first of each family. */
  readonly addresses: readonly string[]
  /** Its probe pod. */
  readonly pod: string
  readonly podIps: readonly string[]
}

export interface AssignedService {
  readonly clusterIPs: readonly string[]
  readonly nodePorts: Readonly<Partial<Record<Protocol, number>>>
  readonly healthCheckNodePort: number | undefined
}

export interface Facts {
  readonly nodes: readonly TestNode[]
  readonly families: readonly Family[]
  readonly services: Readonly<Record<ServiceName, AssignedService>>
  /** The Service default/kubernetes. */
  readonly apiServer: { readonly clusterIPs: readonly string[]; readonly port: number } | undefined
  readonly hasExternalIPs: boolean
  /** Whether the machine that runs the command dials, too. */
  readonly outside: boolean
  readonly skip: ReadonlySet<Row>
}

/** The steps of a test, each with endpoints of its own for the Service `change`. */
export const phases = ['start', 'replaced', 'terminating', 'gone', 'back'] as const
export type Phase = (typeof phases)[number]

/** The rows of the table. */
export const rows = [
  'pod network',
  'API server',
  'cluster IP',
  'hairpin',
  'external IP',
  'load balancer IP',
  'node port',
  'session affinity',
  'source ranges',
  'internal policy Local',
  'external policy Local',
  'client address kept',
  'health check port',
  'no endpoints',
  'dead endpoint',
  'endpoint replaced',
  'open UDP socket',
  'terminating endpoint',
  'last endpoint gone',
  'endpoint back',
] as const
export type Row = (typeof rows)[number]

export interface Client {
  readonly kind: 'pod' | 'node' | 'outside'
  /** Where it runs; empty for outside. */
  readonly node: string
}

export type Expected =
  | {
      readonly kind: 'answer'
      /** Endpoints that may answer. Absent: whoever listens. */
      readonly by?: readonly string[]
      /** `each`: every one of them has to. `one`: always the same. An endpoint: that one among others. */
      readonly spread?: 'each' | 'one' | { readonly includes: string }
      readonly keepsClient?: boolean
      readonly status?: number
    }
  | { readonly kind: 'refusal' }
  /** Refused or dropped: no endpoint may answer. */
  | { readonly kind: 'nothing' }
  /** Some answers, with the number of refused connections. */
  | { readonly kind: 'measure' }

export interface Check {
  /** The same in each run on the same cluster, whatever addresses are given out. */
  readonly id: string
  readonly row: Row
  /** What is dialled: `cluster IP`, `node port`... */
  readonly via: string
  readonly phase: Phase
  /** The node whose proxy decides. */
  readonly proxy: string
  /** The node of the pod, where a pod is dialled. */
  readonly to: string | undefined
  readonly client: Client
  readonly family: Family
  readonly protocol: Protocol
  readonly service: ServiceName | undefined
  readonly dial: Dial
  readonly expected: Expected
}

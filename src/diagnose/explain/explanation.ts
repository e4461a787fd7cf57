// The answer of `kube-proxy explain`, as data: what `-o json` prints. docs/reference/explain.md describes it field by field.

import type { KernelStep } from '../../packet-walk/types.ts'
import type { FrontendKind } from '../../model/types.ts'
import type { Outcome } from './decide.ts'
import type { Miss } from './misses.ts'

export interface Explanation {
  readonly version: 1
  /** One sentence: what happens, or what is wrong. */
  readonly headline: string
  /** `differs`: the kernel does not do what was decided, or not what was said. */
  readonly agreement: 'agrees' | 'differs' | 'not compared'
  readonly question: {
    readonly from: string
    readonly source: string
    readonly to: string
    readonly destination: string
    readonly port: number
    readonly protocol: string
    /** Where the objects come from. */
    readonly asked: string
    /** False: only rules are there, and nothing was decided. */
    readonly hasObjects: boolean
    readonly node: string
    readonly mode: string
    readonly assumed: readonly string[]
  }
  readonly outcome: Outcome
  readonly because: string
  readonly client: { readonly kind: 'pod' | 'node' | 'other'; readonly because: string }
  readonly frontend: ExplainedFrontend | null
  readonly misses: readonly Miss[]
  readonly sources: { readonly allowed: boolean; readonly why: string } | null
  readonly policy: ExplainedPolicy | null
  readonly backends: readonly ExplainedBackend[]
  readonly affinity: ExplainedAffinity | null
  readonly masquerade: { readonly masquerade: boolean | 'depends on the backend'; readonly why: string } | null
  /** For a connection whose backend may be chosen at connect(): by which clients, and what that means. Null: the rules see all of them. */
  readonly atConnect: string | null
  /** Further remarks about the objects. */
  readonly problems: readonly string[]
  /** Null: nothing of a kernel was looked at. */
  readonly kernel: ExplainedKernel | null
  /** `--send`. */
  readonly sent: ExplainedSending | null
}

export interface ExplainedFrontend {
  readonly servicePort: string
  readonly kind: FrontendKind
  /** Null for a node port. */
  readonly address: string | null
  readonly port: number
  readonly protocol: string
}

export interface ExplainedPolicy {
  readonly field: string
  readonly value: 'Cluster' | 'Local'
  /** The list of endpoints that this client gets. */
  readonly list: 'Cluster' | 'Local'
  readonly why: string
  readonly topology: string
}

export interface ExplainedBackend {
  readonly address: string
  readonly port: number
  readonly node: string
  readonly eligible: boolean
  readonly why: string
  readonly masquerade: boolean
  /** What part of the new connections it gets, 0 to 1; null: as much as each other, or nothing. */
  readonly share: number | null
}

export interface ExplainedAffinity {
  readonly seconds: number
  /** Whether the kernel, or the proxy, remembers this client; null: neither was looked at. */
  readonly remembered: boolean | null
  readonly backend: string | null
  readonly secondsLeft: number | null
}

export interface ExplainedKernel {
  /** What was read, and from where: `table ip kube-proxy, read now`. */
  readonly what: string
  /** What keeps it from being read. */
  readonly error: string | null
  /** The ends that a packet may come to. */
  readonly ways: readonly ExplainedWay[]
  /** Where it differs from what was decided. */
  readonly differences: readonly string[]
}

export interface ExplainedWay {
  readonly outcome: Outcome
  readonly destination: string
  readonly masqueraded: boolean
  readonly steps: readonly ExplainedStep[]
}

export type ExplainedStep = Omit<KernelStep, 'counted' | 'comment'> & {
  readonly comment: string | null
  /** Null: the object does not count. */
  readonly packets: number | null
  readonly bytes: number | null
}

export interface ExplainedSending {
  readonly from: string
  /** What came back: `connected`, `refused`, `no answer`, ... */
  readonly answer: string
  /** What the kernel's trace says, rule by rule. */
  readonly trace: readonly string[]
  readonly outcome: Outcome | 'unknown'
  readonly destination: string | null
  /** The rule of nftables that dropped it: `table inet fw, chain out: tcp dport 80 drop`. */
  readonly droppedBy: string | null
  /** What the kernel dropped of the connection, on this node or in another network of this machine; null: it could not be watched. */
  readonly drops: readonly ExplainedDrop[] | null
  /** Why it could not be watched. */
  readonly dropsError: string | null
  readonly differences: readonly string[]
}

export interface ExplainedDrop {
  /** `10.0.0.1:40000 > 10.0.0.2:80` */
  readonly packet: string
  /** The kernel's own word: `NETFILTER_DROP`. Null: it is older than 5.17. */
  readonly reason: string | null
  /** What that means, for those that people meet. */
  readonly what: string | null
  /** The function of the kernel; null where it hides them. */
  readonly function: string | null
  readonly link: string | null
  /** `on this node`, `in the network namespace of process 12 (nginx)` */
  readonly where: string
  /** What runs a command there: `nsenter -t 12 -n`; null: it is this node, or nobody knows. */
  readonly enter: string | null
  /** The rule of nftables that dropped it there: a second packet was traced. */
  readonly rule: string | null
}

// Rules of other programs, of nftables or iptables, as far as they can be decoded, and the way of a packet through them.
//
// Every condition is `yes`, `no` or `maybe`. A packet that a rule certainly ends is a finding. One that it may end is a doubt.

import type { Bytes } from '../../lib/ip.ts'
import { ownerOf, type Owner } from './owners.ts'

export type Truth = 'yes' | 'no' | 'maybe'

export type HookName = 'ingress' | 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting' | 'egress'

/** A packet as it is while it passes some hooks. */
export interface ForeignPacket {
  /** `a packet from this node to 10.244.1.3:3000` */
  readonly label: string
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly source: Bytes
  readonly sourcePort: number
  readonly destination: Bytes
  readonly destinationPort: number
  /** What the client dialled, where the packet has another destination by now. */
  readonly dialled: { readonly address: Bytes; readonly port: number } | undefined
  /** An answer belongs to a connection that exists. */
  readonly isAnswer: boolean
  readonly inputInterface: string | undefined
  readonly outputInterface: string | undefined
  readonly visits: readonly Visit[]
  /** The mark by which the proxy has it masqueraded; undefined: its source is kept, or the mark is not known. */
  readonly masqueradeMark?: number | undefined
  /** Of a connection that this node opens, so that its attempt shows whether the packet passes. */
  readonly isOfThisNode: boolean
}

/** A hook, and which of its chains see the packet as it is here. */
export interface Visit {
  readonly hook: HookName
  readonly above?: number
  readonly upTo?: number
}

/** What rules can see of a packet where it is. */
export interface Seen {
  readonly packet: ForeignPacket
  readonly hook: HookName
  readonly isLocalAddress: (address: Bytes) => boolean
  readonly linkTo: LinkTo
  /** Undefined: a rule may have changed it. */
  readonly mark: number | undefined
}

/** The link by which this machine sends to an address; undefined: not known. */
export type LinkTo = (address: Bytes) => string | undefined

const notKnown: LinkTo = () => undefined

/** Whether the answers leave by the link that the packet came in by: then a check of the way back lets it pass. */
export function comesTheRightWay({ packet, linkTo }: Seen): boolean {
  return packet.inputInterface !== undefined && linkTo(packet.source) === packet.inputInterface
}

export type Action =
  | { readonly kind: 'none' }
  | { readonly kind: 'accept' | 'drop' | 'reject' | 'return' }
  /** A program decides. */
  | { readonly kind: 'queue' }
  /** The packet gets another destination. */
  | { readonly kind: 'translate' }
  /** The packet gets this source. */
  | { readonly kind: 'source'; readonly address: Bytes }
  | { readonly kind: 'untrack' }
  /** The connection tracker keeps it apart from packets of other zones. */
  | { readonly kind: 'zone' }
  /** How many more machines it may pass. */
  | { readonly kind: 'hops'; readonly left: number }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string }
  /** Undefined: the target cannot be decoded. */
  | { readonly kind: 'mark'; readonly change: (mark: number) => number | undefined }

export interface ForeignRule {
  /** As its own tool prints it. */
  readonly text: string
  /** The number by which nft prints it. */
  readonly handle?: number
  readonly matches: (seen: Seen) => Truth
  /** One, or for a verdict map those that its elements have. */
  readonly actions: (seen: Seen) => readonly PossibleAction[]
}

export interface PossibleAction {
  readonly action: Action
  /** `maybe`: what cannot be seen here decides whether it takes the packet. */
  readonly truth: Truth
}

const certain = (action: Action): PossibleAction => ({ action, truth: 'yes' })
/** Of a chain of type nat, those that translate the source are the end. */
const accepted = certain({ kind: 'accept' })
const translated = certain({ kind: 'translate' })
const queued = certain({ kind: 'queue' })

/** The words of nft, and in capitals of iptables, that say what becomes of a packet. */
export const ENDS: Readonly<Record<string, PossibleAction>> = {
  accept: accepted,
  masquerade: accepted,
  snat: accepted,
  netmap: accepted,
  drop: certain({ kind: 'drop' }),
  reject: certain({ kind: 'reject' }),
  return: certain({ kind: 'return' }),
  dnat: translated,
  redirect: translated,
  tproxy: { ...translated, truth: 'maybe' },
  synproxy: { action: { kind: 'drop' }, truth: 'maybe' },
  queue: queued,
  nfqueue: queued,
  notrack: certain({ kind: 'untrack' }),
}

export interface ForeignChain {
  readonly name: string
  /** Of a base chain: the kernel enters it at a hook. */
  readonly base?: {
    readonly hook: HookName
    readonly priority: number
    readonly type: string
    readonly policy: 'accept' | 'drop'
    /** Of netdev: the only link, where it is listed. */
    readonly device?: string
  }
  readonly rules: readonly ForeignRule[]
}

export interface ForeignTable {
  /** `inet filter`, `filter of iptables-nft` */
  readonly name: string
  readonly chains: ReadonlyMap<string, ForeignChain>
  /** The proxy of this node keeps its rules elsewhere: chains of a kube-proxy here are another's. */
  readonly hasNoProxy?: boolean
  /** The command that shows a chain of it. */
  readonly show: (chain: string) => string
}

/** Where a packet ends, or may end. */
export interface ForeignEnd {
  readonly table: ForeignTable
  readonly chain: string
  readonly rule: string
  readonly handle: number | undefined
  readonly verdict:
    | 'drop'
    | 'reject'
    | 'translated'
    | 'queued'
    | 'untracked'
    | 'readdressed'
    | 'unmarked'
    | 'zoned'
    | 'shortened'
  readonly isCertain: boolean
  readonly owner: Owner | undefined
  readonly packet: ForeignPacket
}

/** Of the hooks prerouting and output: destinations are translated there. */
export const DSTNAT = -100

/** Of the hook postrouting: marked packets are masqueraded there. */
const SRCNAT = 100

/** What rules ask about this machine. */
export interface Here {
  readonly isLocalAddress: Seen['isLocalAddress']
  readonly linkTo?: LinkTo
}

/** All ends of one packet in one table: the last may be certain. */
export function walkForeignTable(table: ForeignTable, packet: ForeignPacket, here: Here): ForeignEnd[] {
  const walk = new ForeignWalk(table, packet, here)
  for (const visit of packet.visits) {
    const chains = [...table.chains.values()]
      .filter(({ base }) => base !== undefined && sees(base, visit, packet))
      .sort((a, b) => a.base!.priority - b.base!.priority)
    for (const chain of chains) if (walk.enter(chain, visit.hook) === 'ended') return walk.ends
  }
  return walk.ends
}

function sees(base: NonNullable<ForeignChain['base']>, visit: Visit, packet: ForeignPacket): boolean {
  const { hook, priority, type, device } = base
  if (hook !== visit.hook || priority <= (visit.above ?? -Infinity) || priority > (visit.upTo ?? Infinity)) return false
  // Translations are decided once, for the first packet of a connection.
  if (type === 'nat' && packet.isAnswer) return false
  const link = hook === 'egress' ? packet.outputInterface : packet.inputInterface
  return device === undefined || device === link
}

/** Whether a packet comes to the end of a chain; 'ended': certainly nowhere further. */
type Left = Truth | 'ended'

/** A chain that calls itself does not exist in the kernel; one that is listed so is not followed for ever. */
const DEEPEST = 32

class ForeignWalk {
  readonly #table: ForeignTable
  readonly #packet: ForeignPacket
  readonly #here: Here
  readonly ends: ForeignEnd[] = []
  #hook: HookName = 'prerouting'
  #mark: number | undefined
  /** It is marked for masquerading, and has not been masqueraded. */
  #isMarkNeeded = false

  constructor(table: ForeignTable, packet: ForeignPacket, here: Here) {
    this.#table = table
    this.#packet = packet
    this.#here = here
    this.#mark = packet.masqueradeMark ?? 0
  }

  enter(chain: ForeignChain, hook: HookName): Left {
    this.#hook = hook
    const { priority = 0 } = chain.base ?? {}
    this.#isMarkNeeded = this.#packet.masqueradeMark !== undefined && (hook !== 'postrouting' || priority < SRCNAT)
    const left = this.#run(chain, true, 0)
    if (left === 'ended' || left === 'no' || chain.base?.policy !== 'drop') return left
    const rule = { text: 'policy drop', handle: undefined }
    this.#end(chain, rule, { verdict: 'drop', isCertain: left === 'yes' })
    return left === 'yes' ? 'ended' : left
  }

  #run(chain: ForeignChain, isCertain: boolean, depth: number): Left {
    let certain = isCertain
    let left: Truth = 'yes'
    const isOfProxy = isProxyChain(chain.name)
    // What the proxy of this node has decided is not another program's.
    if (depth > DEEPEST || (isOfProxy && this.#table.hasNoProxy !== true)) return left
    for (const rule of chain.rules) {
      const seen = this.#seen()
      const matches = rule.matches(seen)
      if (matches === 'no') continue
      for (const { action, truth } of rule.actions(seen)) {
        // Of two proxies, the one that came last translates a packet.
        const sure = certain && matches === 'yes' && truth === 'yes' && !(isOfProxy && action.kind === 'translate')
        switch (action.kind) {
          case 'accept':
            if (sure) return 'no'
            certain = false
            left = 'maybe'
            break
          case 'return':
            if (sure) return left
            certain = false
            break
          case 'drop':
          case 'reject':
          case 'translate':
          case 'queue':
            this.#end(chain, rule, { verdict: VERDICTS[action.kind], isCertain: sure && action.kind !== 'queue' })
            if (sure && action.kind !== 'queue') return 'ended'
            break
          case 'untrack':
            // Of a connection that was translated, the answer has to be translated back. What a program on this machine takes
            // for itself, as a name server's cache does, needs no translation.
            if (
              this.#packet.isAnswer === (this.#packet.dialled !== undefined) &&
              (this.#packet.isAnswer || !this.#here.isLocalAddress(this.#packet.destination))
            )
              this.#end(chain, rule, { verdict: 'untracked', isCertain: sure })
            break
          case 'zone':
            if (this.#packet.dialled !== undefined) this.#end(chain, rule, { verdict: 'zoned', isCertain: false })
            break
          case 'hops':
            if (action.left <= FEW_HOPS) this.#end(chain, rule, { verdict: 'shortened', isCertain: false })
            break
          case 'source':
            if (!this.#here.isLocalAddress(action.address))
              this.#end(chain, rule, { verdict: 'readdressed', isCertain: false })
            if (sure) return 'no'
            certain = false
            left = 'maybe'
            break
          case 'mark':
            this.#mark = sure && this.#mark !== undefined ? action.change(this.#mark) : undefined
            if (this.#isMarkNeeded && this.#mark !== undefined && (this.#mark & this.#packet.masqueradeMark!) === 0) {
              this.#isMarkNeeded = false
              this.#end(chain, rule, { verdict: 'unmarked', isCertain: false })
            }
            break
          case 'jump':
          case 'goto': {
            const target = this.#table.chains.get(action.chain)
            const after: Left = target === undefined ? 'yes' : this.#run(target, sure, depth + 1)
            if (after === 'ended') return 'ended'
            if (sure && after === 'no') return 'no'
            if (after !== 'yes') {
              certain = false
              left = 'maybe'
            }
            if (action.kind === 'goto') {
              if (sure) return left
              certain = false
            }
            break
          }
          case 'none':
        }
      }
    }
    return left
  }

  #seen(): Seen {
    const { isLocalAddress, linkTo = notKnown } = this.#here
    return { packet: this.#packet, hook: this.#hook, isLocalAddress, linkTo, mark: this.#mark }
  }

  #end(
    { name }: ForeignChain,
    { text, handle }: { readonly text: string; readonly handle?: number | undefined },
    { verdict, isCertain }: Pick<ForeignEnd, 'verdict' | 'isCertain'>,
  ): void {
    const owner = ownerOf(this.#table.name, name)
    this.ends.push({
      table: this.#table,
      chain: name,
      rule: text,
      handle,
      verdict,
      isCertain,
      owner,
      packet: this.#packet,
    })
  }
}

/** The next machine takes one, and a pod may be behind two. */
const FEW_HOPS = 2

const VERDICTS = { drop: 'drop', reject: 'reject', translate: 'translated', queue: 'queued' } as const

/** Chains of a kube-proxy, ours or the Go one, and of the kubelet; kube-router's have the same beginning. */
function isProxyChain(chain: string): boolean {
  return /^KUBE-(?!(ROUTER|NWPLCY|POD-FW)-)/.test(chain)
}

export function all(truths: readonly Truth[]): Truth {
  if (truths.includes('no')) return 'no'
  return truths.includes('maybe') ? 'maybe' : 'yes'
}

export function any(truths: readonly Truth[]): Truth {
  if (truths.includes('yes')) return 'yes'
  return truths.includes('maybe') ? 'maybe' : 'no'
}

export function not(truth: Truth): Truth {
  return truth === 'maybe' ? 'maybe' : truth === 'yes' ? 'no' : 'yes'
}

export function truthOf(holds: boolean | undefined): Truth {
  return holds === undefined ? 'maybe' : holds ? 'yes' : 'no'
}

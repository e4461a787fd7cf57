// What `nft -j list ruleset` prints of other programs, as rules that a packet can be followed through.

import { type Bytes, cidrContains, parseCidr, parseIp } from '../../lib/ip.ts'
import {
  all,
  any,
  type Action,
  comesTheRightWay,
  ENDS,
  type ForeignChain,
  type ForeignRule,
  type ForeignTable,
  type HookName,
  not,
  type PossibleAction,
  type Seen,
  type Truth,
  truthOf,
} from './foreign-rules.ts'

type Json = unknown
type JsonRecord = Readonly<Record<string, Json>>

export interface ListedTable extends ForeignTable {
  readonly family: string
  readonly plainName: string
  /** Switched off: its chains see no packets. */
  readonly isDormant: boolean
}

/** All tables of the listing, whatever their family. Undefined when the text is no listing. */
export function parseForeignTables(text: string): ListedTable[] | undefined {
  let objects: JsonRecord[]
  try {
    objects = listOf(recordOf(JSON.parse(text))['nftables']).map(recordOf)
  } catch {
    return undefined
  }
  return objects.flatMap((object) => {
    const { family, name, flags } = recordOf(object['table'])
    if (typeof family !== 'string' || typeof name !== 'string') return []
    const isDormant = [flags].flat().includes('dormant')
    const isOf = (kind: string) => (each: JsonRecord) => {
      const { family: of, table } = recordOf(each[kind])
      return of === family && table === name
    }
    const objectsOf = (kind: string) => objects.filter(isOf(kind)).map((each) => recordOf(each[kind]))
    const sets = new Map([...objectsOf('set'), ...objectsOf('map')].map((set) => [String(set['name']), set['elem']]))
    const rules = objectsOf('rule')
    const chains = objectsOf('chain').map((chain) => chainOf(chain, rules, sets))
    const show = (chain: string) => `nft -a list chain ${family} ${name} ${chain}`
    const listed = `${family} ${name}`
    return [
      {
        name: listed,
        family,
        plainName: name,
        isDormant,
        chains: new Map(chains.map((chain) => [chain.name, chain])),
        show,
      },
    ]
  })
}

type Sets = ReadonlyMap<string, Json>

function chainOf(chain: JsonRecord, rules: readonly JsonRecord[], sets: Sets): ForeignChain {
  const { name, hook, prio, type, policy, dev } = chain
  const own = rules.filter(({ chain: of }) => of === name).map((rule) => ruleOf(rule, sets))
  if (typeof hook !== 'string') return { name: String(name), rules: own }
  const base = {
    hook: hook as HookName,
    priority: Number(prio),
    type: String(type),
    policy: policy === 'drop' ? ('drop' as const) : ('accept' as const),
    ...(typeof dev === 'string' ? { device: dev } : {}),
  }
  return { name: String(name), base, rules: own }
}

function ruleOf({ expr, handle }: JsonRecord, sets: Sets): ForeignRule {
  const statements = listOf(expr).map(recordOf)
  const conditions = statements.flatMap((each) => conditionOf(each, sets) ?? [])
  const actions = statements.flatMap((each) => actionsOf(each, sets))
  return {
    text: `the rule with the handle ${String(handle)}`,
    ...(typeof handle === 'number' ? { handle } : {}),
    matches: (seen) => all(conditions.map((holds) => holds(seen))),
    actions: (seen) => actions.flatMap((each) => each(seen)),
  }
}

type Condition = (seen: Seen) => Truth

/** Undefined: a statement that every packet passes. */
function conditionOf(statement: JsonRecord, sets: Sets): Condition | undefined {
  const [kind = ''] = Object.keys(statement)
  const body = recordOf(statement[kind])
  if (kind === 'match') return matchOf(body, sets)
  // With a rate or a number beside the element, it holds for some packets, as such statements do by themselves.
  const isPassed = kind === 'set' ? listOf(body['stmt']).every((each) => passes(recordOf(each))) : passes(statement)
  return isPassed ? undefined : () => 'maybe'
}

function passes(statement: JsonRecord): boolean {
  return Object.keys(statement).every((kind) => PASSED.has(kind) || kind in NFT_ENDS)
}

/** Statements that every packet passes, and that decide nothing. */
const PASSED: ReadonlySet<string> = new Set(
  'counter,log,last,dup,flow,reset,secmark,continue,mangle,vmap,jump,goto,ct helper,ct timeout,ct expectation'.split(
    ',',
  ),
)

function matchOf({ op, left, right }: JsonRecord, sets: Sets): Condition {
  return (seen) => {
    const value = valueOf(left, seen)
    if (value === ABSENT) return 'no'
    const holds = compare(value, right, { op: String(op), sets })
    return op === '!=' ? not(holds) : holds
  }
}

/** What no packet of this kind has. */
const ABSENT = Symbol('absent')

/** Undefined: not known. */
type Value = Bytes | number | string | Flags | readonly Value[] | typeof ABSENT | undefined

class Flags {
  readonly names: readonly string[]
  constructor(...names: readonly string[]) {
    this.names = names
  }
}

function valueOf(json: Json, seen: Seen): Value {
  const record = recordOf(json)
  const [kind = ''] = Object.keys(record)
  const body = recordOf(record[kind])
  const { packet } = seen
  switch (kind) {
    case 'concat':
      return listOf(record['concat']).map((each) => valueOf(each, seen))
    case '&':
      return maskedOf(listOf(record['&']), seen)
    case 'payload':
      return payloadOf(body, seen)
    case 'meta':
      return metaOf(String(body['key']), seen)
    case 'ct':
      return conntrackOf(body, seen)
    case 'fib': {
      // What has a way back is not missing; whether another lacks one is not known.
      if (['oif', 'oifname'].includes(String(body['result'])))
        return listOf(body['flags']).includes('saddr') && comesTheRightWay(seen) ? packet.inputInterface : undefined
      if (body['result'] !== 'type') return undefined
      const address = listOf(body['flags']).includes('saddr') ? packet.source : packet.destination
      return seen.isLocalAddress(address) ? 'local' : 'unicast'
    }
    default:
      return undefined
  }
}

function maskedOf([of, mask]: readonly Json[], seen: Seen): Value {
  const value = valueOf(of, seen)
  if (typeof value === 'number' && typeof mask === 'number') return (value & mask) >>> 0
  if (value instanceof Flags && Array.isArray(mask))
    return new Flags(...value.names.filter((name) => mask.includes(name)))
  return value === ABSENT ? value : undefined
}

function payloadOf({ protocol, field }: JsonRecord, { packet }: Seen): Value {
  const family = packet.source.length === 4 ? 'ip' : 'ip6'
  if (protocol === 'ip' || protocol === 'ip6') {
    if (protocol !== family) return ABSENT
    if (field === 'saddr') return packet.source
    if (field === 'daddr') return packet.destination
    return field === 'protocol' || field === 'nexthdr' ? packet.protocol.toLowerCase() : undefined
  }
  if (typeof protocol === 'string' && /^icmp|^igmp$|^esp$|^ah$|^arp$/.test(protocol)) return ABSENT
  if (protocol !== 'th' && protocol !== packet.protocol.toLowerCase()) {
    return ['tcp', 'udp', 'udplite', 'sctp', 'dccp'].includes(String(protocol)) ? ABSENT : undefined
  }
  if (field === 'dport') return packet.destinationPort
  if (field === 'sport') return packet.sourcePort
  if (field === 'flags' && protocol === 'tcp') return packet.isAnswer ? new Flags('syn', 'ack') : new Flags('syn')
  return undefined
}

function metaOf(key: string, { packet, hook, mark }: Seen): Value {
  const family = packet.source.length === 4 ? 'ipv4' : 'ipv6'
  switch (key) {
    case 'l4proto':
      return packet.protocol.toLowerCase()
    case 'nfproto':
      return family
    case 'protocol':
      return family === 'ipv4' ? 'ip' : 'ip6'
    case 'mark':
      return mark
    case 'iif':
    case 'iifname':
      return hook === 'output' ? '' : (packet.inputInterface ?? '')
    case 'oif':
    case 'oifname':
      return ['prerouting', 'input', 'ingress'].includes(hook) ? '' : packet.outputInterface
    default:
      return undefined
  }
}

function conntrackOf({ key, dir }: JsonRecord, { packet }: Seen): Value {
  const dialled = packet.dialled ?? { address: packet.destination, port: packet.destinationPort }
  switch (key) {
    case 'state':
      return new Flags(packet.isAnswer ? 'established' : 'new')
    case 'status':
      return packet.dialled === undefined ? undefined : new Flags('dnat')
    case 'direction':
      return packet.isAnswer ? 'reply' : 'original'
    case 'mark':
      return 0
    case 'daddr':
    case 'ip daddr':
    case 'ip6 daddr':
      return dir === 'reply' || packet.isAnswer ? undefined : dialled.address
    case 'proto-dst':
      return dir === 'reply' || packet.isAnswer ? undefined : dialled.port
    default:
      return undefined
  }
}

/** Without the negation of `!=`. */
function compare(value: Value, right: Json, { op, sets }: { readonly op: string; readonly sets: Sets }): Truth {
  if (value === undefined) return 'maybe'
  // `missing`, of a route.
  if (right === false) return 'no'
  if (value instanceof Flags) return compareFlags(value, right, op)
  if (['<', '>', '<=', '>='].includes(op)) {
    if (typeof value !== 'number' || typeof right !== 'number') return 'maybe'
    return truthOf(
      op === '<' ? value < right : op === '>' ? value > right : op === '<=' ? value <= right : value >= right,
    )
  }
  if (typeof right === 'string' && right.startsWith('@')) {
    const name = right.slice(1)
    return sets.has(name) ? any(listOf(sets.get(name)).map((each) => equals(value, keyOf(each)))) : 'maybe'
  }
  const list = recordOf(right)['set']
  if (list !== undefined) return any(listOf(list).map((each) => equals(value, keyOf(each))))
  return equals(value, right)
}

function compareFlags(value: Flags, right: Json, op: string): Truth {
  const inSet = recordOf(right)['set']
  const wanted = inSet === undefined ? (Array.isArray(right) ? right.map(String) : [String(right)]) : listOf(inSet)
  if (wanted.some((each) => typeof each !== 'string' || each === '0x0')) return 'maybe'
  // In a set, each element is one value; nft prints a list of bits where any of them counts.
  if (inSet !== undefined || op === 'in') return truthOf(value.names.some((name) => wanted.includes(name)))
  if (op === '!') return truthOf(!value.names.some((name) => wanted.includes(name)))
  return truthOf(value.names.length === wanted.length && value.names.every((name) => wanted.includes(name)))
}

function equals(value: Value, right: Json): Truth {
  if (value === undefined) return 'maybe'
  if (Array.isArray(value)) {
    const parts = listOf(recordOf(right)['concat'])
    if (parts.length !== value.length) return 'maybe'
    return all(value.map((each, i) => (each === ABSENT ? 'no' : equals(each as Value, parts[i]))))
  }
  const { prefix, range } = recordOf(right)
  if (prefix !== undefined) return inPrefix(value, recordOf(prefix))
  if (Array.isArray(range)) return inRange(value, range)
  if (right === '*') return 'yes'
  if (typeof value === 'number') return typeof right === 'number' ? truthOf(value === right) : 'maybe'
  if (typeof value !== 'string' || typeof right !== 'string') return 'maybe'
  const address = parseIp(right)
  if (address !== undefined) return truthOf(value === address)
  // `eth*` is all that begins so.
  return truthOf(right.endsWith('*') ? value.startsWith(right.slice(0, -1)) : value === right)
}

function inPrefix(value: Value, { addr, len }: JsonRecord): Truth {
  const cidr = parseCidr(`${String(addr)}/${String(len)}`)
  return cidr === undefined || typeof value !== 'string' ? 'maybe' : truthOf(cidrContains(cidr, value as Bytes))
}

function inRange(value: Value, [from, to]: readonly Json[]): Truth {
  if (typeof value === 'number' && typeof from === 'number' && typeof to === 'number')
    return truthOf(value >= from && value <= to)
  const [first, last] = [parseIp(String(from)), parseIp(String(to))]
  if (typeof value !== 'string' || first === undefined || last === undefined) return 'maybe'
  return truthOf(value.length === first.length && value >= first && value <= last)
}

/** Of an element of a set or a map, without its timeout, counter and comment. */
function keyOf(json: Json): Json {
  const wrapped = recordOf(recordOf(json)['elem'])
  return wrapped['val'] ?? json
}

/** Whether they take the packet depends on what cannot be seen here. xt is a match or a target of iptables that nft does not know. */
const NFT_ENDS: Readonly<Record<string, PossibleAction>> = {
  ...ENDS,
  fwd: { action: { kind: 'drop' }, truth: 'maybe' },
  xt: { action: { kind: 'drop' }, truth: 'maybe' },
}

function actionsOf(statement: JsonRecord, sets: Sets): ((seen: Seen) => readonly PossibleAction[])[] {
  const [kind = ''] = Object.keys(statement)
  const body = recordOf(statement[kind])
  if (kind === 'vmap') return [(seen) => verdictsOf(body, seen, sets)]
  const actions = [actionOf(kind, body)]
  return actions[0]!.action.kind === 'none' ? [] : [() => actions]
}

function actionOf(kind: string, body: JsonRecord): PossibleAction {
  const action: Action =
    kind === 'jump' || kind === 'goto'
      ? { kind, chain: String(body['target']) }
      : kind === 'mangle'
        ? changeOf(body)
        : { kind: 'none' }
  const source = kind === 'snat' && typeof body['addr'] === 'string' ? parseIp(body['addr']) : undefined
  if (source !== undefined) return { action: { kind: 'source', address: source }, truth: 'yes' }
  return NFT_ENDS[kind] ?? { action, truth: 'yes' }
}

/** Of the packet: its mark, its zone, its hops. */
function changeOf({ key, value }: JsonRecord): Action {
  if (recordOf(recordOf(key)['ct'])['key'] === 'zone') return { kind: 'zone' }
  const { field } = recordOf(recordOf(key)['payload'])
  if ((field === 'ttl' || field === 'hoplimit') && typeof value === 'number') return { kind: 'hops', left: value }
  if (recordOf(recordOf(key)['meta'])['key'] !== 'mark') return { kind: 'none' }
  if (typeof value === 'number') return { kind: 'mark', change: () => value }
  const [operator = ''] = Object.keys(recordOf(value))
  const operand = listOf(recordOf(value)[operator])[1]
  if (typeof operand !== 'number') return { kind: 'mark', change: () => undefined }
  return {
    kind: 'mark',
    change: (mark) =>
      operator === '|'
        ? (mark | operand) >>> 0
        : operator === '&'
          ? (mark & operand) >>> 0
          : operator === '^'
            ? (mark ^ operand) >>> 0
            : undefined,
  }
}

/** Those of the elements that fit; with `maybe` where the value is not known. */
function verdictsOf({ key, data }: JsonRecord, seen: Seen, sets: Sets): PossibleAction[] {
  const value = valueOf(key, seen)
  const list = typeof data === 'string' ? sets.get(data.replace(/^@/, '')) : recordOf(data)['set']
  if (value === ABSENT) return []
  return listOf(list).flatMap((element) => {
    const [elementKey, verdict] = Array.isArray(element) ? (element as Json[]) : []
    const truth =
      value instanceof Flags
        ? compareFlags(value, keyOf(elementKey), 'in')
        : compare(value, keyOf(elementKey), { op: '==', sets })
    if (truth === 'no') return []
    const [kind = ''] = typeof verdict === 'string' ? [verdict] : Object.keys(recordOf(verdict))
    return [{ action: actionOf(kind, recordOf(recordOf(verdict)[kind])).action, truth }]
  })
}

function recordOf(json: Json): JsonRecord {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as JsonRecord) : {}
}

function listOf(json: Json): readonly Json[] {
  return Array.isArray(json) ? json : []
}

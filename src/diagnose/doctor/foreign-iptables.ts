// What `iptables-save` prints, as rules that a packet can be followed through.

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

/** `program` is the one that changes them: `iptables-legacy`. */
export function parseForeignIptables(text: string, program: string): ForeignTable[] {
  return text.split(/^(?=\*)/m).flatMap((part) => {
    const name = /^\*(\w+)$/m.exec(part)?.[1]
    if (name === undefined) return []
    const rules = new Map<string, ForeignRule[]>()
    for (const [, chain = '', rule = ''] of part.matchAll(/^(?:\[\d+:\d+\] )?-A (\S+) ?(.*)$/gm)) {
      const list = rules.get(chain)
      if (list === undefined) rules.set(chain, [ruleOf(rule)])
      else list.push(ruleOf(rule))
    }
    const chains = Array.from(part.matchAll(/^:(\S+) (\S+)/gm), ([, chain = '', policy = '']): ForeignChain => {
      const own = rules.get(chain) ?? []
      const hook = HOOKS[chain]
      if (policy === '-' || hook === undefined) return { name: chain, rules: own }
      const isNat = name === 'nat'
      const base = {
        hook,
        priority: priorityOf(name, hook),
        type: isNat ? 'nat' : 'filter',
        policy: policy === 'DROP' ? ('drop' as const) : ('accept' as const),
      }
      return { name: chain, base, rules: own }
    })
    return [
      {
        name: `${name} of ${program}`,
        chains: new Map(chains.map((chain) => [chain.name, chain])),
        show: (chain) => `${program} -t ${name} -L ${chain} -n -v --line-numbers`,
      },
    ]
  })
}

const HOOKS: Readonly<Record<string, HookName>> = {
  PREROUTING: 'prerouting',
  INPUT: 'input',
  FORWARD: 'forward',
  OUTPUT: 'output',
  POSTROUTING: 'postrouting',
}

/** NF_IP_PRI_* of linux/netfilter_ipv4.h. */
function priorityOf(table: string, hook: HookName): number {
  if (table === 'nat') return hook === 'prerouting' || hook === 'output' ? -100 : 100
  return { raw: -300, mangle: -150, security: 50 }[table] ?? 0
}

type Condition = (seen: Seen) => Truth

function ruleOf(text: string): ForeignRule {
  const words = splitWords(text)
  const conditions: Condition[] = []
  let actions: readonly PossibleAction[] = []
  let isNegated = false
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (word === '!') {
      isNegated = true
      continue
    }
    if (word === '-j' || word === '-g') {
      const target = words[i + 1] ?? ''
      const goes = { action: { kind: 'goto', chain: target }, truth: 'yes' } as const
      actions = [word === '-g' ? goes : targetOf(target, words.slice(i + 2))]
      // The rest belongs to the target.
      break
    }
    if (word === '--invert') {
      const last = conditions.pop()
      if (last !== undefined) conditions.push((seen) => not(last(seen)))
      continue
    }
    if (FLAGS.has(word)) continue
    const option = OPTIONS[word]
    if (option !== undefined) {
      const holds = option(words[i + 1] ?? '', words[i + 2] ?? '')
      const negated = isNegated
      if (holds !== undefined) conditions.push((seen) => (negated ? not(holds(seen)) : holds(seen)))
      i += word === '--tcp-flags' ? 2 : 1
    } else {
      // Something of a match that is not known here, with its values.
      conditions.push(() => 'maybe')
      while (i + 1 < words.length && !/^(-|!$)/.test(words[i + 1]!)) i++
    }
    isNegated = false
  }
  return { text, matches: (seen) => all(conditions.map((holds) => holds(seen))), actions: () => actions }
}

/** Undefined: it says nothing about packets. */
const OPTIONS: Readonly<Record<string, (value: string, second: string) => Condition | undefined>> = {
  // What a match asks for follows as options of its own; those with no options hold.
  '-m': (name) =>
    name === 'rpfilter'
      ? (seen) => (comesTheRightWay(seen) ? 'yes' : 'maybe')
      : ['socket', 'bpf', 'physdev', 'unclean', 'ipvs'].includes(name)
        ? () => 'maybe'
        : undefined,
  '--comment': () => undefined,
  '-s':
    (network) =>
    ({ packet }) =>
      within(packet.source, network),
  '-d':
    (network) =>
    ({ packet }) =>
      within(packet.destination, network),
  '-i':
    (name) =>
    ({ packet, hook }) =>
      isLink(name, hook === 'output' ? '' : (packet.inputInterface ?? '')),
  '-o':
    (name) =>
    ({ packet, hook }) =>
      isLink(name, hook === 'prerouting' || hook === 'input' ? '' : packet.outputInterface),
  '-p':
    (protocol) =>
    ({ packet }) =>
      truthOf(
        protocol === 'all' || protocol === packet.protocol.toLowerCase() || protocol === NUMBERS[packet.protocol],
      ),
  '--dport':
    (range) =>
    ({ packet }) =>
      inRange(packet.destinationPort, range),
  '--sport':
    (range) =>
    ({ packet }) =>
      inRange(packet.sourcePort, range),
  '--dports':
    (list) =>
    ({ packet }) =>
      any(list.split(',').map((range) => inRange(packet.destinationPort, range))),
  '--sports':
    (list) =>
    ({ packet }) =>
      any(list.split(',').map((range) => inRange(packet.sourcePort, range))),
  '--ports':
    (list) =>
    ({ packet }) =>
      any(
        list.split(',').flatMap((range) => [inRange(packet.destinationPort, range), inRange(packet.sourcePort, range)]),
      ),
  '--ctstate': (states) => hasState(states),
  '--state': (states) => hasState(states),
  '--ctorigdst':
    (network) =>
    ({ packet }) =>
      packet.isAnswer ? 'maybe' : within(packet.dialled?.address ?? packet.destination, network),
  '--ctorigdstport':
    (range) =>
    ({ packet }) =>
      packet.isAnswer ? 'maybe' : inRange(packet.dialled?.port ?? packet.destinationPort, range),
  '--ctdir':
    (direction) =>
    ({ packet }) =>
      truthOf((direction === 'REPLY') === packet.isAnswer),
  '--dst-type':
    (type) =>
    ({ packet, isLocalAddress }) =>
      type === 'LOCAL'
        ? truthOf(isLocalAddress(packet.destination))
        : isOtherType(type, isLocalAddress(packet.destination)),
  '--src-type':
    (type) =>
    ({ packet, isLocalAddress }) =>
      type === 'LOCAL' ? truthOf(isLocalAddress(packet.source)) : isOtherType(type, isLocalAddress(packet.source)),
  '--mark': (text) => {
    const [value = '', mask = '0xffffffff'] = text.split('/')
    return ({ mark }) => truthOf(mark === undefined ? undefined : (mark & Number(mask)) >>> 0 === Number(value))
  },
  '--tcp-flags':
    (mask, wanted) =>
    ({ packet }) => {
      if (packet.protocol !== 'TCP') return 'no'
      const has = (packet.isAnswer ? ['SYN', 'ACK'] : ['SYN']).filter((flag) => mask.split(',').includes(flag))
      const wants = wanted === 'NONE' ? [] : wanted.split(',')
      return truthOf(has.length === wants.length && has.every((flag) => wants.includes(flag)))
    },
  '--icmp-type': () => () => 'no',
  '--icmpv6-type': () => () => 'no',
}

const NUMBERS = { TCP: '6', UDP: '17', SCTP: '132' } as const

function isOtherType(type: string, isLocal: boolean): Truth {
  return type === 'UNICAST'
    ? truthOf(isLocal ? false : undefined)
    : ['BROADCAST', 'MULTICAST'].includes(type)
      ? 'no'
      : 'maybe'
}

function hasState(states: string): Condition {
  const names = states.split(',')
  return ({ packet }) => {
    if (names.includes(packet.isAnswer ? 'ESTABLISHED' : 'NEW')) return 'yes'
    if (names.includes('DNAT') && packet.dialled !== undefined) return 'yes'
    return names.some((name) => name === 'DNAT' || name === 'SNAT') ? 'maybe' : 'no'
  }
}

/** Options without a value of the match rpfilter. */
const FLAGS: ReadonlySet<string> = new Set(['--validmark', '--loose', '--accept-local'])

function targetOf(name: string, options: readonly string[]): PossibleAction {
  const source = name === 'SNAT' ? addressOf(valueOf(options, '--to-source')) : undefined
  if (source !== undefined) return { action: { kind: 'source', address: source }, truth: 'yes' }
  return (
    (/[a-z]/.test(name) ? undefined : ENDS[name.toLowerCase()]) ?? { action: otherTarget(name, options), truth: 'yes' }
  )
}

function otherTarget(name: string, options: readonly string[]): Action {
  switch (name) {
    case 'CT':
      if (options.includes('--notrack')) return { kind: 'untrack' }
      return options.some((option) => option.startsWith('--zone')) ? { kind: 'zone' } : { kind: 'none' }
    case 'TTL':
    case 'HL':
      return options[0]?.endsWith('-set') === true ? { kind: 'hops', left: Number(options[1]) } : { kind: 'none' }
    case 'MARK': {
      const [value = '', mask = '0xffffffff'] = (options[1] ?? '').split('/')
      return { kind: 'mark', change: (mark) => ((mark & ~Number(mask)) ^ Number(value)) >>> 0 }
    }
    case 'CONNMARK':
      return options.includes('--restore-mark') ? { kind: 'mark', change: () => undefined } : { kind: 'none' }
    default:
      // A target that does not end the packet's way, such as LOG, is no chain of the table.
      return { kind: 'jump', chain: name }
  }
}

function valueOf(options: readonly string[], name: string): string {
  const at = options.indexOf(name)
  return at < 0 ? '' : (options[at + 1] ?? '')
}

/** `192.0.2.1-192.0.2.9`, `192.0.2.1:1024-65535`, `[2001:db8::1]:1024-65535`: the first address. */
function addressOf(text: string): Bytes | undefined {
  const [first = ''] = text.split('-')
  return parseIp(first) ?? parseIp(first.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''))
}

function within(address: Bytes, network: string): Truth {
  const cidr = parseCidr(network.includes('/') ? network : `${network}/${address.length * 8}`)
  return cidr === undefined ? 'maybe' : truthOf(cidrContains(cidr, address))
}

function isLink(name: string, link: string | undefined): Truth {
  if (link === undefined) return 'maybe'
  return truthOf(name.endsWith('+') ? link.startsWith(name.slice(0, -1)) : link === name)
}

/** `80`, `1024:65535`, `:1023` */
function inRange(port: number, range: string): Truth {
  const [from = '', to = from] = range.split(':')
  return truthOf(port >= Number(from || 0) && port <= Number(to || 65_535))
}

/** Words are separated by spaces; in quotes, a backslash makes the next character an ordinary one. */
function splitWords(text: string): string[] {
  return Array.from(text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g), ([, quoted, plain]) =>
    quoted === undefined ? plain! : quoted.replace(/\\(.)/g, '$1'),
  )
}

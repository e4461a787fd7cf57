// Rules and tables as iptables-save prints them, which iptables-restore reads. Checked against iptables 1.8.9.

import type { Family } from '../lib/ip.ts'
import type { Match, Rule, RuleText, TableName, Tables, Target } from './types.ts'

/** The text of a rule. Two rules that do the same have the same text. */
export function formatRule(rule: Rule): RuleText {
  const { source, destination, inputInterface, protocol, matches, target } = rule
  let text = ''
  if (source !== undefined && !isEverything(source.network)) text += negated(source.not, `-s ${source.network} `)
  if (destination !== undefined && !isEverything(destination.network)) {
    text += negated(destination.not, `-d ${destination.network} `)
  }
  if (inputInterface !== undefined) text += negated(inputInterface.not, `-i ${inputInterface.name} `)
  if (protocol !== undefined) text += `-p ${protocol} `
  for (const match of matches) text += `${formatMatch(match)} `
  return target === undefined ? text.slice(0, -1) : `${text}-j ${formatTarget(target)}`
}

/** Whole tables, chains in order of their names: what iptables-save would print of them, without its remarks. */
export function formatTables(tables: Tables): string {
  return [...tables].map(([name, chains]) => formatRestoreTable(name, chains)).join('')
}

function formatRestoreTable(name: TableName, chains: ReadonlyMap<string, readonly RuleText[]>): string {
  const sorted = [...chains].sort(([a], [b]) => compareChains(a, b))
  const lines = [`*${name}`]
  for (const [chain] of sorted) lines.push(`:${chain} ${isBuiltIn(chain) ? 'ACCEPT' : '-'} [0:0]`)
  for (const [chain, rules] of sorted) for (const rule of rules) lines.push(`-A ${chain} ${rule}`)
  return `${lines.join('\n')}\nCOMMIT\n`
}

const BUILT_IN: readonly string[] = ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']

/** Whether every table may have the chain from the start, without a program having made it. */
export function isBuiltIn(chain: string): boolean {
  return BUILT_IN.includes(chain)
}

/** As iptables-save: those of the kernel on the packet's way, then the others by name. */
function compareChains(a: string, b: string): number {
  const [ofA, ofB] = [BUILT_IN.indexOf(a), BUILT_IN.indexOf(b)]
  if (ofA >= 0 && ofB >= 0) return ofA - ofB
  if (ofA >= 0 || ofB >= 0) return ofA >= 0 ? -1 : 1
  return a < b ? -1 : 1
}

function formatMatch(match: Match): string {
  switch (match.kind) {
    case 'comment':
      return `-m comment --comment ${quote(match.text)}`
    case 'ports':
      return `-m ${match.protocol}${match.destination === undefined ? '' : ` --dport ${match.destination}`}`
    case 'isPing':
      return match.family === 4 ? '-m icmp --icmp-type 8' : '-m icmp6 --icmpv6-type 128'
    case 'mark':
      return `-m mark ${negated(match.not, `--mark ${hex(match.value)}/${hex(match.mask)}`)}`
    case 'random':
      return `-m statistic --mode random --probability ${probability(match.outOf)}`
    case 'recentSet':
      return `-m recent --set --name ${match.list} ${wholeAddress(match.family)} --rsource`
    case 'recentCheck':
      return `-m recent --rcheck --seconds ${match.seconds} --reap --name ${match.list} ${wholeAddress(match.family)} --rsource`
    case 'conntrack':
      return `-m conntrack ${negated(match.not, `--ctstate ${match.states.join(',')}`)}`
    case 'isLocal':
      return `-m addrtype --${match.side}-type LOCAL`
    case 'connlimit': {
      const mask = match.of === 'all' ? 0 : match.of === 4 ? 32 : 128
      return `-m connlimit --connlimit-above ${match.most} --connlimit-mask ${mask} --connlimit-saddr`
    }
    case 'hashlimit': {
      const rate = `--hashlimit-above ${spokenRate(match.perSecond)}/sec --hashlimit-burst ${match.perSecond}`
      if (match.of === 'all') return `-m hashlimit ${rate} --hashlimit-name ${match.list}`
      return `-m hashlimit ${rate} --hashlimit-mode srcip --hashlimit-name ${match.list} ${BOUNDS}`
    }
    case 'count':
      return `-m nfacct --nfacct-name ${match.counter}`
  }
}

/** Of a list of clients: a client without packets is forgotten after two seconds, and where there is no room for one more, its packet is dropped. */
const BOUNDS = '--hashlimit-htable-size 1024 --hashlimit-htable-max 65536 --hashlimit-htable-expire 2000'

/** The kernel counts in microseconds: above 1,000 packets in a second, not every number can be said. */
function spokenRate(perSecond: number): number {
  return Math.floor(1e6 / Math.floor(1e6 / perSecond))
}

function formatTarget(target: Target): string {
  switch (target.kind) {
    case 'jump':
      return target.chain
    case 'accept':
    case 'drop':
    case 'return':
      return target.kind.toUpperCase()
    case 'reject':
      if (target.with === 'reset') return 'REJECT --reject-with tcp-reset'
      return `REJECT --reject-with ${target.family === 4 ? 'icmp' : 'icmp6'}-port-unreachable`
    case 'setMark':
      return `MARK --set-xmark ${hex(target.value)}/${hex(target.mask)}`
    case 'masquerade':
      return target.randomPorts === 'fully' ? 'MASQUERADE --random-fully' : 'MASQUERADE'
    case 'dnat':
      return `DNAT --to-destination ${target.to}`
  }
}

const probabilities = new Map<number, string>()

/**
 * kube-proxy writes 1/n with ten decimals, the kernel keeps a multiple of 2^-31 of that, and iptables-save prints it with
 * eleven.
 */
function probability(outOf: number): string {
  let text = probabilities.get(outOf)
  if (text === undefined) {
    const written = Number((1 / outOf).toFixed(10))
    text = (Math.round(written * 2 ** 31) / 2 ** 31).toFixed(11)
    // There are as many others as weights, which anyone may write.
    if (Number.isInteger(outOf)) probabilities.set(outOf, text)
  }
  return text
}

/** What {@link probability} was made of: a whole number, if it may have been one. */
export function outOfProbability(chance: number): number {
  const whole = Math.round(1 / chance)
  return Math.abs(1 / whole - chance) < 1e-9 ? whole : 1 / chance
}

function negated(not: boolean | undefined, text: string): string {
  return not === true ? `! ${text}` : text
}

/** As iptables-save quotes: whatever has a character that is no letter, digit, dash or underscore. */
function quote(text: string): string {
  // A line break would end the rule, and what follows would be a command to iptables-restore.
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(text)) {
    throw new RangeError(`Cannot write ${JSON.stringify(text)} into a rule: it has control characters`)
  }
  return /^[\w-]+$/.test(text) ? text : `"${text.replace(/["'\\]/g, '\\$&')}"`
}

function hex(value: number): string {
  return `0x${value.toString(16)}`
}

function wholeAddress(family: Family): string {
  return `--mask ${family === 4 ? '255.255.255.255' : 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'}`
}

function isEverything(network: string): boolean {
  return network.endsWith('/0')
}

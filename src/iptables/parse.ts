// What iptables-save prints, read back.

import { outOfProbability } from './format.ts'
import type { Chains, Match, Rule, RuleText, TableName, Target } from './types.ts'

/** The chains of the first table in the output of iptables-save; undefined when there is none. */
export function parseTable(saved: string): Chains | undefined {
  const chains = new Map<string, RuleText[]>()
  let inTable = false
  for (const line of saved.split('\n')) {
    if (line.startsWith('*')) {
      if (inTable) break
      inTable = true
    } else if (line.startsWith(':')) {
      chains.set(line.slice(1, line.indexOf(' ')), [])
    } else if (line.startsWith('-A ')) {
      const space = line.indexOf(' ', 3)
      const end = space < 0 ? line.length : space
      // iptables prints two spaces here.
      const rule = line.slice(end + 1).replace('--nfacct-name  ', '--nfacct-name ')
      chains.get(line.slice(3, end))?.push(rule)
    }
  }
  return inTable ? chains : undefined
}

/** The tables in the output of iptables-save. */
export function parseTables(saved: string): Map<TableName, Chains> {
  const tables = new Map<TableName, Chains>()
  for (const text of saved.split(/^(?=\*)/m)) {
    const name = /^\*(\w+)/.exec(text)?.[1]
    const chains = parseTable(text)
    if (name !== undefined && chains !== undefined) tables.set(name as TableName, chains)
  }
  return tables
}

/** A rule of ours as data. Throws when it has something that our rules do not have. */
export function parseRule(text: RuleText): Rule {
  return new RuleParser(text).parse()
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

class RuleParser {
  readonly #text: RuleText
  readonly #words: readonly string[]
  #next = 0
  #not = false

  constructor(text: RuleText) {
    this.#text = text
    this.#words = splitWords(text)
  }

  parse(): Rule {
    const matches: Match[] = []
    const rule: Mutable<Rule> = { matches, target: undefined }
    while (this.#next < this.#words.length) {
      const option = this.#word()
      switch (option) {
        case '!':
          this.#not = true
          continue
        case '-s':
          rule.source = { network: this.#word(), ...this.#negation() }
          break
        case '-d':
          rule.destination = { network: this.#word(), ...this.#negation() }
          break
        case '-i':
          rule.inputInterface = { name: this.#word(), ...this.#negation() }
          break
        case '-p':
          rule.protocol = this.#word()
          break
        case '-m':
          matches.push(this.#match(this.#word()))
          break
        case '-j':
          rule.target = this.#target(this.#word())
          break
        default:
          this.#refuse(option)
      }
    }
    return rule
  }

  #match(name: string): Match {
    switch (name) {
      case 'comment':
        return { kind: 'comment', text: this.#value('--comment') }
      case 'tcp':
      case 'udp':
      case 'sctp':
        if (!this.#has('--dport')) return { kind: 'ports', protocol: name }
        return { kind: 'ports', protocol: name, destination: Number(this.#value('--dport')) }
      case 'icmp':
        if (this.#value('--icmp-type') !== '8') this.#refuse('--icmp-type')
        return { kind: 'isPing', family: 4 }
      case 'icmp6':
        if (this.#value('--icmpv6-type') !== '128') this.#refuse('--icmpv6-type')
        return { kind: 'isPing', family: 6 }
      case 'mark': {
        const negation = this.#leadingNegation()
        return { kind: 'mark', ...valueAndMask(this.#value('--mark')), ...negation }
      }
      case 'statistic':
        if (this.#value('--mode') !== 'random') this.#refuse('--mode')
        return { kind: 'random', outOf: outOfProbability(Number(this.#value('--probability'))) }
      case 'recent':
        return this.#recent()
      case 'conntrack': {
        const negation = this.#leadingNegation()
        return { kind: 'conntrack', states: this.#value('--ctstate').split(','), ...negation }
      }
      case 'addrtype': {
        const side = this.#has('--src-type') ? 'src' : 'dst'
        if (this.#value(`--${side}-type`) !== 'LOCAL') this.#refuse('addrtype')
        return { kind: 'isLocal', side }
      }
      case 'connlimit': {
        const most = Number(this.#value('--connlimit-above'))
        const mask = this.#value('--connlimit-mask')
        this.#skip('--connlimit-saddr')
        return { kind: 'connlimit', most, of: mask === '0' ? 'all' : mask === '32' ? 4 : 6 }
      }
      case 'hashlimit': {
        this.#skip('--hashlimit-above')
        this.#word()
        // The rate is rounded.
        const perSecond = Number(this.#value('--hashlimit-burst'))
        const byClient = this.#has('--hashlimit-mode')
        if (byClient && this.#value('--hashlimit-mode') !== 'srcip') this.#refuse('--hashlimit-mode')
        const list = this.#value('--hashlimit-name')
        for (const option of byClient ? ['size', 'max', 'expire'] : []) this.#value(`--hashlimit-htable-${option}`)
        return { kind: 'hashlimit', list, perSecond, of: byClient ? 'client' : 'all' }
      }
      case 'nfacct':
        return { kind: 'count', counter: this.#value('--nfacct-name') }
      default:
        return this.#refuse(`-m ${name}`)
    }
  }

  #reject(how: string): Target {
    // A rule does not say of which family it is; a reset is the same in both.
    if (how === 'tcp-reset') return { kind: 'reject', family: 4, with: 'reset' }
    return { kind: 'reject', family: how.startsWith('icmp6') ? 6 : 4 }
  }

  #recent(): Match {
    const isCheck = this.#has('--rcheck')
    if (isCheck) this.#skip('--rcheck')
    else this.#skip('--set')
    const seconds = isCheck ? Number(this.#value('--seconds')) : 0
    if (isCheck) this.#skip('--reap')
    const list = this.#value('--name')
    const family = this.#value('--mask').includes(':') ? 6 : 4
    this.#skip('--rsource')
    return isCheck ? { kind: 'recentCheck', list, family, seconds } : { kind: 'recentSet', list, family }
  }

  #target(name: string): Target {
    switch (name) {
      case 'ACCEPT':
        return { kind: 'accept' }
      case 'DROP':
        return { kind: 'drop' }
      case 'RETURN':
        return { kind: 'return' }
      case 'REJECT':
        return this.#reject(this.#value('--reject-with'))
      case 'MARK':
        return { kind: 'setMark', ...valueAndMask(this.#value('--set-xmark')) }
      case 'MASQUERADE':
        if (!this.#has('--random-fully')) return { kind: 'masquerade', randomPorts: 'no' }
        this.#skip('--random-fully')
        return { kind: 'masquerade', randomPorts: 'fully' }
      case 'DNAT':
        return { kind: 'dnat', to: this.#value('--to-destination') }
      default:
        return { kind: 'jump', chain: name }
    }
  }

  #word(): string {
    const word = this.#words[this.#next++]
    return word ?? this.#refuse('its end')
  }

  #has(option: string): boolean {
    return this.#words[this.#next] === option
  }

  #skip(option: string): void {
    const word = this.#word()
    if (word !== option) this.#refuse(word)
  }

  #value(option: string): string {
    this.#skip(option)
    return this.#word()
  }

  /** The `!` that stood before an option of the rule itself. */
  #negation(): { not?: true } {
    const { not } = { not: this.#not }
    this.#not = false
    return not ? { not: true } : {}
  }

  /** The `!` that stands between the name of a match and its option. */
  #leadingNegation(): { not?: true } {
    if (!this.#has('!')) return {}
    this.#next++
    return { not: true }
  }

  #refuse(what: string): never {
    throw new Error(`Cannot read the rule ${JSON.stringify(this.#text)}: ${what} is not something of ours`)
  }
}

function valueAndMask(text: string): { value: number; mask: number } {
  const [value = '', mask = '0xffffffff'] = text.split('/')
  return { value: Number(value), mask: Number(mask) }
}

/** Words are separated by spaces; in quotes, a backslash makes the next character an ordinary one. */
function splitWords(text: string): string[] {
  const words: string[] = []
  for (const [, quoted, plain] of text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)) {
    words.push(quoted === undefined ? plain! : quoted.replace(/\\(.)/g, '$1'))
  }
  return words
}

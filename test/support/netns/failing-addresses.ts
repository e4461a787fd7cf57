// Endpoints that do not answer: addresses of a pod at which its kernel refuses new connections, ignores them, or says that
// no server is there. Connections that are open go on.

import type { Netns } from './netns.ts'

export type Fate = 'refuse' | 'hang' | 'unreachable'

const fates = { refuse: 'reject with tcp reset', hang: 'drop', unreachable: '' } as const satisfies Record<Fate, string>

const families = { ip: 'ipv4_addr', ip6: 'ipv6_addr' } as const

export class FailingAddresses {
  readonly #netns: Netns

  constructor(netns: Netns) {
    this.#netns = netns
    const sets = Object.keys(fates).flatMap((fate) =>
      Object.entries(families).map(([ip, type]) => `set ${fate}-${ip} { type ${type}; counter; }`),
    )
    const rules = Object.entries(fates).flatMap(([fate, verdict]) =>
      Object.keys(families).map((ip) => {
        const unreachable = ip === 'ip' ? 'reject with icmp host-unreachable' : 'reject with icmpv6 addr-unreachable'
        const text = `${ip} daddr @${fate}-${ip} tcp flags & (syn | ack) == syn ${verdict || unreachable}`
        return text
      }),
    )
    const chain = `chain input { type filter hook input priority 0;\n${rules.join('\n')}\n}`
    netns.run('nft', ['-f', '-'], `table inet failing {\n${[...sets, chain].join('\n')}\n}\n`)
  }

  set(address: string, fate: Fate): void {
    this.#netns.run('nft', ['add', 'element', 'inet', 'failing', setName(address, fate), `{ ${address} }`])
  }

  clear(address: string, fate: Fate): void {
    this.#netns.run('nft', ['delete', 'element', 'inet', 'failing', setName(address, fate), `{ ${address} }`])
  }

  /** How many SYNs came to each address of this fate. */
  attempts(fate: Fate): Map<string, number> {
    const found = new Map<string, number>()
    for (const ip of Object.keys(families)) {
      const text = this.#netns.run('nft', ['list', 'set', 'inet', 'failing', `${fate}-${ip}`])
      for (const [, address = '', packets] of text.matchAll(/([\da-f.:]+) counter packets (\d+)/g)) {
        found.set(address, Number(packets))
      }
    }
    return found
  }
}

function setName(address: string, fate: Fate): string {
  return `${fate}-${address.includes(':') ? 'ip6' : 'ip'}`
}

// What may go wrong, chosen at random. Each fault says what it did, opens the excuses that it is good for, and ends when
// everything is well again.

import { setTimeout as sleep } from 'node:timers/promises'
import type { NodeStatus } from '../../packages/sandbox/src/instance/control.ts'
import { eventually } from '../support/eventually.ts'
import type { Cluster } from './cluster.ts'
import type { Ledger, Loss } from './ledger.ts'
import type { SoakMode } from './options.ts'
import type { Random } from './random.ts'

export interface Fault {
  readonly name: string
  readonly cause: () => Promise<void>
}

/** In userspace mode a proxy that got SIGTERM lets its connections finish for 25 s. */
const WELL_WITHIN = { withinMs: 45_000, everyMs: 100 }
/** A connection on which something is said every second was last heard of before then, where the flush has ended it. */
const LAST_HEARD_MS = 3000
const CUT =
  'add table inet away; add chain inet away in { type filter hook input priority 0; }; add chain inet away out { type filter hook output priority 0; }; add rule inet away in tcp dport 6443 drop; add rule inet away out tcp sport 6443 drop'

const flushes: Readonly<Record<SoakMode, readonly (readonly [string, ...string[]])[]>> = {
  nftables: [['nft', 'flush ruleset']],
  iptables: [
    ['nft', 'flush ruleset'],
    ['iptables', '-t', 'nat', '-F'],
  ],
  ipvs: [
    ['nft', 'flush ruleset'],
    ['ipvsadm', '--clear'],
  ],
  userspace: [['nft', 'flush ruleset']],
}

export class Faults {
  readonly #cluster: Cluster
  readonly #ledger: Ledger
  readonly #random: Random
  readonly #mode: SoakMode
  #configurations = 0

  constructor(cluster: Cluster, ledger: Ledger, random: Random, mode: SoakMode) {
    this.#cluster = cluster
    this.#ledger = ledger
    this.#random = random
    this.#mode = mode
  }

  pick(): Fault {
    const kinds = [
      () => this.#restart('SIGKILL'),
      () => this.#restart('SIGTERM'),
      () => this.#flushRules(),
      () => this.#flushConntrack(),
      () => this.#apiServerAway(),
      () => this.#changeConfiguration(),
      () => this.#spoilConfiguration(),
      () => this.changeMode(),
    ]
    return this.#random.pick(kinds)()
  }

  /** Only the last node: the proxy of the first lives as long as the run, so that its growth can be seen. */
  #restart(signal: 'SIGKILL' | 'SIGTERM'): Fault {
    const { name } = this.#cluster.nodes.at(-1)!
    return {
      name: `${signal} of the proxy of ${name}`,
      cause: async () => {
        const before = await this.#status(name)
        // Only in userspace mode does the process carry connections.
        const excuse =
          this.#mode === 'userspace'
            ? this.#ledger.open(`${signal} of a proxy that carries it`, ({ through }) => through.includes(name))
            : undefined
        process.kill(before.proxyPid!, signal)
        await eventually(
          `the proxy of ${name} is started again`,
          async () => ((await this.#status(name)).restarts > before.restarts ? undefined : 'not yet'),
          WELL_WITHIN,
        )
        await this.#untilWell()
        if (excuse !== undefined) this.#ledger.close(excuse)
      },
    }
  }

  #flushRules(): Fault {
    const node = this.#random.pick(this.#cluster.nodes)
    const command = this.#random.pick(flushes[this.#mode])
    return {
      name: `${command.join(' ')} on ${node.name}`,
      cause: async () => {
        const excuse = this.#ledger.open('rules flushed', ({ through }) => through.includes(node.name))
        await this.#cluster.run(node.netns, command)
        await this.#untilWell()
        this.#ledger.close(excuse)
      },
    }
  }

  /** What is translated only by the connection tracker is lost with it; nothing that begins afterwards is. */
  #flushConntrack(): Fault {
    const node = this.#random.pick(this.#cluster.nodes)
    return {
      name: `conntrack -F on ${node.name}`,
      cause: async () => {
        const begun = performance.now()
        let flushedMs = Infinity
        const isUnderWay = (loss: Loss) => loss.kind === 'long tcp' || loss.sinceMs <= flushedMs
        const excuse = this.#ledger.open(
          'connection tracker flushed',
          (loss) => loss.through.includes(node.name) && isUnderWay(loss),
        )
        await this.#cluster.run(node.netns, ['conntrack', '-F'])
        flushedMs = performance.now()
        await sleep(Math.max(0, begun + LAST_HEARD_MS - performance.now()))
        this.#ledger.close(excuse)
        await this.#untilWell()
      },
    }
  }

  #apiServerAway(): Fault {
    const seconds = this.#random.between(3, 8)
    return {
      name: `API server away for ${seconds} s`,
      cause: async () => {
        const fabric = await this.#cluster.sandbox.place('control-plane')
        try {
          await this.#cluster.run(fabric, ['nft', CUT])
          await sleep(seconds * 1000)
          await this.#cluster.run(fabric, ['nft', 'delete table inet away'])
        } finally {
          fabric.close()
        }
        await this.#untilWell()
      },
    }
  }

  /** Settings that rules depend on, and some that make the proxy start again within its process. */
  #changeConfiguration(): Fault {
    const section = this.#mode === 'nftables' ? 'nftables' : 'iptables'
    const turn = this.#configurations++
    const [name, changed] = this.#random.pick([
      ['verbosity', { logging: { verbosity: 2 + (turn % 2) } }],
      ['masquerade bit', { [section]: { masqueradeBit: 15 + (turn % 2) } }],
      ['profiling', { enableProfiling: turn % 2 === 0 }],
      ['node port addresses', { nodePortAddresses: turn % 2 === 0 ? ['0.0.0.0/0'] : ['primary'] }],
    ] as [string, object][])
    return {
      name: `configuration: ${name}`,
      cause: async () => {
        this.#cluster.configuration.write(changed)
        await sleep(2000)
        await this.#untilWell()
      },
    }
  }

  #spoilConfiguration(): Fault {
    return {
      name: 'configuration: not YAML',
      cause: async () => {
        this.#cluster.configuration.spoil()
        await sleep(2000)
        await this.#untilWell()
        this.#cluster.configuration.write({})
        await sleep(1000)
      },
    }
  }

  /** Another mode takes over on all nodes, and hands back. Between modes of rules nothing is lost. */
  changeMode(): Fault {
    const other = this.#mode === 'nftables' ? 'iptables' : 'nftables'
    return {
      name: `mode ${other} and back`,
      cause: async () => {
        const isOfRules = this.#mode === 'nftables' || this.#mode === 'iptables'
        const excuse = isOfRules ? undefined : this.#ledger.open('change of the mode', () => true)
        for (const mode of [other, this.#mode]) {
          this.#cluster.configuration.write({ mode })
          await eventually(`the mode is ${mode}`, () => this.#modeComplaint(mode), WELL_WITHIN)
          await this.#untilWell()
        }
        if (excuse !== undefined) this.#ledger.close(excuse)
      },
    }
  }

  /** A proxy says its mode on its metrics port, which is on the node's loopback only. */
  async #modeComplaint(mode: string): Promise<string | undefined> {
    for (const { name, netns } of this.#cluster.nodes) {
      const url = 'http://127.0.0.1:10249/proxyMode'
      const now = await this.#cluster.run(netns, ['curl', '-s', '-m', '5', url]).catch(() => 'no answer')
      if (now !== mode) return `${name} says ${now}`
    }
    return undefined
  }

  /** Every proxy says that it is well, and everything answers from everywhere. */
  async #untilWell(): Promise<void> {
    await eventually(
      'everything is well again',
      async () => {
        const { nodes } = await this.#cluster.sandbox.status()
        const ill = nodes.find(({ health }) => health !== 'healthy')
        return ill === undefined ? this.#cluster.complaint() : `${ill.name} is ${ill.health}`
      },
      WELL_WITHIN,
    )
  }

  async #status(node: string): Promise<NodeStatus> {
    const { nodes } = await this.#cluster.sandbox.status()
    return nodes.find(({ name }) => name === node)!
  }
}

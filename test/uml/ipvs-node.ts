// The ipvs mode on the node of the test network, in this process: objects go in, the kernel follows.

import { systemClock } from '../../src/lib/clock.ts'
import { silentLogger } from '../../src/lib/log.ts'
import { ProblemLog } from '../../src/model/problems.ts'
import { ServiceModel } from '../../src/model/service-model.ts'
import type { EndpointSlice, Service } from '../../src/kube/types.ts'
import type { NodeView } from '../../src/model/types.ts'
import { openIpvs, type IpvsSettings } from '../../src/modes/ipvs/machine.ts'
import type { RunningMode } from '../../src/modes/contract.ts'
import type { Programmer, ProgrammerReports, SyncStats } from '../../src/reconcile/programmer.ts'
import { readFileSync, writeFileSync } from 'node:fs'
import { node as hostNode } from '../support/addresses.ts'
import { FinishingProgrammer } from '../support/finishing-programmer.ts'
import { nodeView } from '../support/kube-objects.ts'
import type { Netns } from '../support/netns/netns.ts'

export const defaultIpvs: IpvsSettings = {
  scheduler: '',
  excludeCIDRs: [],
  strictARP: false,
  tcpTimeoutMs: 0,
  tcpFinTimeoutMs: 0,
  udpTimeoutMs: 0,
}

export class IpvsNode implements Disposable {
  readonly netns: Netns
  readonly view: NodeView
  /** How often another program was seen to change something. */
  foreignChanges = 0
  readonly #settings: IpvsSettings
  readonly #model: ServiceModel
  #mode!: RunningMode
  #programmer!: Programmer

  private constructor(netns: Netns, settings: Partial<IpvsSettings> = {}, node: Partial<NodeView> = {}) {
    this.netns = netns
    this.#settings = { ...defaultIpvs, ...settings }
    this.view = nodeView({
      nodeName: hostNode.name,
      nodeIp: hostNode.ip[4],
      nodePortAddresses: { kind: 'only', addresses: [hostNode.ip[4]] },
      ...node,
    })
    const problems = new ProblemLog(() => {})
    this.#model = new ServiceModel({ node: this.view, problems, allowExternalIPs: true, startedMs: 0 })
  }

  static async open(
    ...given: [netns: Netns, settings?: Partial<IpvsSettings>, node?: Partial<NodeView>]
  ): Promise<IpvsNode> {
    const node = new IpvsNode(...given)
    await node.start()
    return node
  }

  /** Opens the mode and programs everything, as the program does when it starts. */
  start(): Promise<SyncStats> {
    return this.netns.enter(() => {
      this.#mode = openIpvs({
        settings: this.#settings,
        families: [this.view.family],
        clock: systemClock,
        log: silentLogger,
        files: {
          read: (path) => readFileSync(path, 'utf8'),
          write: (path, value) => writeFileSync(path, value),
        },
        onForeignChange: () => {
          this.foreignChanges++
          void this.#programmer.syncAll(this.view, this.#model.views())
        },
      })
      this.#programmer = new FinishingProgrammer(
        this.#mode.programmer(this.view.family, {
          onRefused: () => {},
        } as Partial<ProgrammerReports> as ProgrammerReports),
        systemClock,
      )
      return this.#programmer.syncAll(this.view, this.#model.views())
    })
  }

  put(...objects: readonly (Service | EndpointSlice)[]): Promise<SyncStats> {
    for (const object of objects) {
      if ('endpoints' in object) this.#model.setSlice(object)
      else this.#model.setService(object)
    }
    return this.#programmer.sync(this.view, this.#model.takeChanges())
  }

  stop(): void {
    void this.#mode.close()
    this.#programmer.close()
  }

  /** What `ipvsadm -Sn` prints, sorted. */
  saved(): string[] {
    return this.netns.run('ipvsadm', ['-Sn']).trim().split('\n').sort()
  }

  /** The destinations, by address: weight, active and inactive connections, as `ipvsadm -Ln` prints them. */
  destinations(): Map<string, { weight: number; active: number; inactive: number }> {
    const found = new Map<string, { weight: number; active: number; inactive: number }>()
    for (const line of this.netns.run('ipvsadm', ['-Ln']).split('\n')) {
      const [, address, weight, active, inactive] = /-> (\S+):\d+\s+Masq\s+(\d+)\s+(\d+)\s+(\d+)/.exec(line) ?? []
      if (address === undefined) continue
      found.set(address, { weight: Number(weight), active: Number(active), inactive: Number(inactive) })
    }
    return found
  }

  [Symbol.dispose](): void {
    this.stop()
  }
}

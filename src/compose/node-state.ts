// What is known about this node, from the configuration, the API and the machine, and what follows from it.

import type { Node } from '../kube/types.ts'
import type { Family } from '../lib/ip.ts'
import { keepKnown } from '../model/known-node.ts'
import { nodeViewWarnings, planNodeView, type NodeFacts, type NodeSettings } from '../model/node-view.ts'
import { planConfigProblems, type ConfigProblems, type OtherSettings } from '../model/config-problems.ts'
import type { NodeView } from '../model/types.ts'

export class NodeState {
  #settings: NodeSettings
  #facts: NodeFacts
  readonly #serviceCidrs = new Map<string, readonly string[]>()
  readonly #onChange: () => void

  constructor(settings: NodeSettings, facts: Pick<NodeFacts, 'node' | 'machineAddresses'>, onChange: () => void) {
    this.#settings = settings
    this.#facts = { ...facts, serviceCidrs: [] }
    this.#onChange = onChange
  }

  /** The Node as it was known last, also when it has been deleted since. */
  get node(): Node | undefined {
    return this.#facts.node
  }

  get machineAddresses(): readonly string[] {
    return this.#facts.machineAddresses
  }

  get serviceCidrs(): readonly string[] {
    return this.#facts.serviceCidrs
  }

  /** What a person should know about the settings on this node. */
  problems(other: OtherSettings): ConfigProblems {
    const { warnings, errors } = planConfigProblems(this.#settings, this.#facts, other)
    return { warnings: [...nodeViewWarnings(this.#settings, this.#facts), ...warnings], errors }
  }

  view(family: Family): NodeView {
    return planNodeView(this.#settings, this.#facts, family)
  }

  setSettings(settings: NodeSettings): void {
    this.#settings = settings
    this.#onChange()
  }

  /**
   * A Node that is deleted is not forgotten: the machine is still there, with its pods, its addresses and its zone. Nor are they
   * when the Node does not say them any more: tells what that is.
   */
  setNode(node: Node): readonly string[] {
    const known = keepKnown(this.#facts.node, node)
    this.#change({ node: known.node })
    return known.kept
  }

  setMachineAddresses(machineAddresses: readonly string[]): void {
    this.#change({ machineAddresses })
  }

  /** The ranges of one ServiceCIDR object; none when it is gone. */
  setServiceCidr(name: string, cidrs: readonly string[]): void {
    if (cidrs.length === 0) this.#serviceCidrs.delete(name)
    else this.#serviceCidrs.set(name, cidrs)
    this.#change({ serviceCidrs: [...this.#serviceCidrs.values()].flat() })
  }

  #change(facts: Partial<NodeFacts>): void {
    this.#facts = { ...this.#facts, ...facts }
    this.#onChange()
  }
}

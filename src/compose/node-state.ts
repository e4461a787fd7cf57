// The state of this node, from the configuration, the API and the machine, and the node views that follow from it.

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

  /** The Node as the API last had it, also when it has been deleted since. */
  get node(): Node | undefined {
    return this.#facts.node
  }

  get machineAddresses(): readonly string[] {
    return this.#facts.machineAddresses
  }

  get serviceCidrs(): readonly string[] {
    return this.#facts.serviceCidrs
  }

  /** Warnings about the settings on this node. */
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
   * Keeps a Node that is deleted: the machine still exists, with its pods, its addresses and its zone. Also keeps fields that the Node
   * no longer has, and returns which ones.
   */
  setNode(node: Node): readonly string[] {
    const known = keepKnown(this.#facts.node, node)
    this.#change({ node: known.node })
    return known.kept
  }

  setMachineAddresses(machineAddresses: readonly string[]): void {
    this.#change({ machineAddresses })
  }

  /** Sets the ranges of one ServiceCIDR object; none when it is deleted. */
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

// One nftables table of the kernel, read back: all of it, or parts.

import { KernelError } from '../lib/errors.ts'
import type { Bytes } from '../lib/ip.ts'
import { atOnce, type Steps } from '../lib/steps.ts'
import {
  elementKey,
  type Chain,
  type Element,
  type NftFamily,
  type NftSet,
  type OwnTable,
  type Rule,
  type TableOutline,
} from './types.ts'
import type { Codec } from '../netlink/attributes.ts'
import type { Message } from '../netlink/message.ts'
import type { TableId } from './bytes/batch.ts'
import { chainAttributes, chainFromAttributes } from './bytes/chain.ts'
import { type CountedElement, countedElement, countedListAttributes } from './bytes/counted-element.ts'
import { elementListAttributes } from './bytes/element.ts'
import { beginNftablesMessage, generationAttributes, type MessageName } from './bytes/messages.ts'
import { ElementReader } from './bytes/decode-elements.ts'
import { writeElements } from './bytes/encode-elements.ts'
import { ruleAttributes, ruleFromAttributes } from './bytes/rule.ts'
import { isAnonymous, setAttributes, setFromAttributes } from './bytes/set.ts'
import { isDormant, type TableAttributes, tableAttributes } from './bytes/table.ts'
import { decodeComment, UDATA_COMMENT } from './bytes/userdata.ts'
import { NLM_F_ACK, NLM_F_DUMP } from '../netlink/uapi/netlink.ts'
import { decodeNetfilterMessage, NFGENMSG_LENGTH } from '../netlink/nfnetlink.ts'
import { Writer } from '../netlink/writer.ts'
import type { NetlinkClient, WhenInterrupted } from '../netlink/client.ts'
import type { PerhapsSets, TableParts } from './table-driver.ts'
import { TableListener } from './listener.ts'

/** How often a table is read again because another program changed it meanwhile. Nothing else happens until then. */
const READ_ATTEMPTS = 5

/** How often a set is read again because the kernel rearranges it. The waits in between double: a second in all. */
const SETTLE_ATTEMPTS = 10

/** Keys of one request: the answers, a page of memory each, have to find room in the socket. */
const KEYS_AT_ONCE = 128

/** Some milliseconds. */
const ELEMENTS_OF_A_STEP = 5000

/** Measured: to list so many elements takes the kernel as long as to find each by its key. It grows with their square. */
export const MANY = 50_000

interface ReadOptions {
  /** What packets have added, too. */
  readonly dynamicElements?: boolean
  /** Those of single rules, too. We write none; Go's kube-proxy does. */
  readonly anonymousSets?: boolean
  readonly perhaps?: PerhapsSets | undefined
}

export class TableReader implements TableId {
  readonly family: NftFamily
  readonly table: string
  readonly parts: TableParts = {
    many: MANY,
    read: (perhaps) => this.#reading({ perhaps }),
    readKeys: (set, keys) => this.readKeys(set, keys),
  }
  readonly #client: NetlinkClient
  readonly #writer = new Writer()

  constructor({ family, table }: TableId, client: NetlinkClient) {
    this.family = family
    this.table = table
    this.#client = client
  }

  /**
   * The whole table as it is in the kernel; undefined when there is none. The elements of dynamic sets, which packets add,
   * are read on request only.
   */
  read(options: ReadOptions = {}): OwnTable | undefined {
    return atOnce(this.#reading(options))
  }

  *#reading(options: ReadOptions = {}): Steps<OwnTable | undefined> {
    const listener = new TableListener(this)
    try {
      for (let attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
        listener.restart()
        const before = this.generation()
        const result = yield* this.#tryReading(options)
        const after = this.generation()
        // A transaction in between changes the generation. If it was on this table, what was read may be half of each.
        if (after !== before && !listener.isUnchangedThrough(after)) continue
        if (result instanceof KernelError) throw result
        return result
      }
    } finally {
      listener.close()
    }
    throw tableError(this, 'read', 'EINTR', 'it keeps changing')
  }

  /** The same without elements, which may be millions. A transaction meanwhile may make it half of each. */
  readOutline({ anonymousSets = false }: ReadOptions = {}): TableOutline | undefined {
    const attributes = this.#getTable()
    if (attributes === undefined) return undefined
    return {
      family: this.family,
      name: this.table,
      comment: decodeComment(UDATA_COMMENT, attributes.userdata),
      ...(isDormant(attributes) ? { isDormant: true } : {}),
      sets: this.#readSets(anonymousSets),
      chains: this.#readChains(),
    }
  }

  /** The rules of one chain; none where there is no such chain. */
  readRules(chain: string): Rule[] {
    this.#begin('getRule', NLM_F_DUMP)
    ruleAttributes.write(this.#writer, { table: this.table, chain })
    const op = this.#place(`read rules of chain ${chain}`)
    const rules = this.#client.dump(
      op,
      this.#end(),
      (message) => decodeNetfilterMessage(ruleAttributes, message),
      'accept',
    )
    // Kernels that do not look at the chain list those of all.
    return rules.filter((rule) => rule.table === this.table && rule.chain === chain).map(ruleFromAttributes)
  }

  /** Whether there is such a table. */
  exists(): boolean {
    return this.#getTable() !== undefined
  }

  /** The elements of one set. */
  readElements(set: NftSet): Element[] {
    return [...atOnce(this.#readingElements(set, 'again')).values()]
  }

  /** The same in steps, as the kernel lists them. */
  *readingElements(set: NftSet): Steps<readonly Element[]> {
    return (yield* this.#fillingReader(set, 'accept')).elements()
  }

  /**
   * Those elements of a set that have one of these keys. The kernel lists a set in parts, and for each of them counts from the
   * beginning: all of a million elements take it a minute. By their keys it finds them in three seconds.
   */
  readKeys(set: NftSet, keys: readonly Bytes[]): Element[] {
    const op = this.#place(`read keys of set ${set.name}`)
    const reader = new ElementReader(set)
    for (let next = 0; next < keys.length;) {
      const elements = keys.slice(next, next + KEYS_AT_ONCE).map((key) => ({ key }))
      this.#begin('getElements', NLM_F_ACK)
      writeElements(this.#writer, { table: this.table, set, elements, action: 'delete' }, 0)
      let found = 0
      const error = this.#client.getEach(op, this.#end(), (message) => {
        found++
        reader.add(message)
      })
      // It stops at the first key that is not there.
      if (error !== undefined && error.errno !== 'ENOENT') throw error
      next += error === undefined ? elements.length : found + 1
    }
    return reader.elements()
  }

  /** What packets have added to a dynamic set, and how long each element is still remembered. */
  readDynamicElements(set: NftSet): readonly { readonly element: Element; readonly remainingMs: number }[] {
    const reader = atOnce(this.#fillingReader(set, 'again'))
    const { remainingMs } = reader
    return reader.elements().map((element, i) => ({ element, remainingMs: remainingMs[i] ?? Infinity }))
  }

  /**
   * What the elements of a set have counted. Packets go on meanwhile: it is a moment, and not the same one for all. The list comes in
   * parts that are decoded when they are asked for, so that other work can have its turns in between.
   */
  readCounters(set: NftSet): (() => CountedElement[])[] {
    this.#begin('getElements', NLM_F_DUMP)
    elementListAttributes.write(this.#writer, { table: this.table, set: set.name })
    const lists = this.#client.dump(this.#place(`read counters of set ${set.name}`), this.#end(), contentOf, 'accept')
    return lists.map((content) => () => {
      const { elements = [] } = countedListAttributes.read(content, 0, content.byteLength) ?? {}
      return elements.flatMap((each) => countedElement(set, each) ?? [])
    })
  }

  /** The number of the last transaction, of whichever process, in this network namespace. */
  generation(): number {
    this.#begin('getGeneration')
    return this.#client.get('read the nftables generation', this.#end(), (message) => {
      return decodeNetfilterMessage(generationAttributes, message)?.id
    })
  }

  /** An error is returned and not thrown: if the table was changed meanwhile, it means nothing. */
  *#tryReading(options: ReadOptions): Steps<OwnTable | KernelError | undefined> {
    try {
      const outline = this.readOutline(options)
      return outline && { ...outline, elements: yield* this.#readingAllElements(outline, options) }
    } catch (error) {
      if (error instanceof KernelError) return error
      throw error
    }
  }

  #getTable(): TableAttributes | undefined {
    this.#begin('getTable')
    tableAttributes.write(this.#writer, { name: this.table })
    try {
      return this.#client.get(this.#place('read'), this.#end(), (message) =>
        decodeNetfilterMessage(tableAttributes, message),
      )
    } catch (error) {
      if (error instanceof KernelError && error.errno === 'ENOENT') return undefined
      throw error
    }
  }

  #readSets(anonymousSets: boolean): Map<string, NftSet> {
    const sets = new Map<string, NftSet>()
    for (const attributes of this.#dump('read sets', 'getSet', setAttributes)) {
      if (attributes.table !== this.table || (isAnonymous(attributes) && !anonymousSets)) continue
      sets.set(attributes.name, setFromAttributes(attributes))
    }
    return sets
  }

  #readChains(): Map<string, Chain> {
    const rules = new Map<string, Rule[]>()
    for (const attributes of this.#dump('read rules', 'getRule', ruleAttributes)) {
      if (attributes.table !== this.table) continue
      const list = rules.get(attributes.chain)
      if (list === undefined) rules.set(attributes.chain, [ruleFromAttributes(attributes)])
      else list.push(ruleFromAttributes(attributes))
    }
    const chains = new Map<string, Chain>()
    for (const attributes of this.#dump('read chains', 'getChain', chainAttributes)) {
      if (attributes.table !== this.table) continue
      const chain = chainFromAttributes(attributes)
      chains.set(chain.name, { ...chain, rules: rules.get(chain.name) ?? [] })
    }
    return chains
  }

  *#readingAllElements(
    outline: TableOutline,
    { dynamicElements = false, perhaps }: ReadOptions,
  ): Steps<OwnTable['elements']> {
    const sets = [...outline.sets.values()].filter(({ dynamic }) => !dynamic || dynamicElements)
    const isLast = ({ name }: NftSet) => perhaps?.sets.has(name) === true
    const elements: OwnTable['elements'] = new Map()
    for (const set of sets) if (!isLast(set)) yield* this.#readingInto(elements, set)
    if (perhaps === undefined || !perhaps.areWanted({ ...outline, elements })) return elements
    for (const set of sets) if (isLast(set)) yield* this.#readingInto(elements, set)
    return elements
  }

  *#readingInto(all: OwnTable['elements'], set: NftSet): Steps<void> {
    const elements = yield* this.#readingElements(set, 'accept')
    if (elements.size > 0) all.set(set.name, elements)
  }

  /**
   * After many elements were added, the kernel enlarges the hash table behind a set in the background. A dump that goes on
   * meanwhile continues by position, in another order: for each element that it misses it lists another twice.
   */
  *#readingElements(set: NftSet, whenInterrupted: WhenInterrupted): Steps<Map<string, Element>> {
    for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
      const list = (yield* this.#fillingReader(set, whenInterrupted)).elements()
      const elements = new Map<string, Element>()
      for (const element of list) {
        elements.set(elementKey(element), element)
        if (elements.size % ELEMENTS_OF_A_STEP === 0) yield
      }
      // Packets change a dynamic set at any moment: by the time that it is read, some of it may have changed.
      if (elements.size === list.length || set.dynamic) return elements
      sleep(2 ** attempt)
    }
    throw tableError(this, `read elements of set ${set.name}`, 'EINTR', 'it keeps changing')
  }

  *#fillingReader(set: NftSet, whenInterrupted: WhenInterrupted): Steps<ElementReader> {
    if (set.key.length === 0 || set.data?.length === 0) return new ElementReader(set)
    this.#begin('getElements', NLM_F_DUMP)
    elementListAttributes.write(this.#writer, { table: this.table, set: set.name })
    let reader = new ElementReader(set)
    const begin = () => {
      reader = new ElementReader(set)
      return (message: Message) => reader.add(message)
    }
    yield* this.#client.dumping(this.#place(`read elements of set ${set.name}`), this.#end(), begin, whenInterrupted)
    return reader
  }

  /**
   * The kernel lists sets, rules and elements of one table when it is asked to, and transactions on others do not disturb
   * that: read() finds out whether there was one on ours. Chains it lists of all tables, by their number, so a chain
   * of another table that comes or goes may hide one of ours.
   */
  #dump<T extends { readonly table?: string | undefined }>(op: string, name: MessageName, codec: Codec<T>): T[] {
    this.#begin(name, NLM_F_DUMP)
    codec.write(this.#writer, { table: this.table } as T)
    const whenInterrupted = name === 'getChain' ? 'again' : 'accept'
    return this.#client.dump(
      this.#place(op),
      this.#end(),
      (message) => decodeNetfilterMessage(codec, message),
      whenInterrupted,
    )
  }

  #begin(name: MessageName, flags = 0): void {
    this.#writer.reset()
    beginNftablesMessage(this.#writer, name, this.family, flags)
  }

  #end(): Uint8Array {
    this.#writer.endMessage()
    return this.#writer.written()
  }

  #place(op: string): string {
    return `${op} of table ${this.family} ${this.table}`
  }
}

export function tableError({ family, table }: TableId, op: string, errno: string, extack?: string): KernelError {
  return new KernelError(`${op} (table ${family} ${table})`, errno, extack)
}

/** Blocks: everything here is synchronous. */
function sleep(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

/** Copied: the buffer is used again for the next message. */
function contentOf({ view, start, end }: Message): DataView {
  const from = view.byteOffset + start + NFGENMSG_LENGTH
  return new DataView(view.buffer.slice(from, view.byteOffset + end))
}

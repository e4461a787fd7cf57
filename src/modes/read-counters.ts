// The table that counts, read so that other work has its turns: each list is received in one, for it has to be of one moment as far
// as the kernel lets it, and decoded in many.

import { formatIp, type Bytes, type Family } from '../lib/ip.ts'
import { inPieces } from '../lib/in-pieces.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { NetlinkClient } from '../netlink/client.ts'
import type { Message } from '../netlink/message.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { NETLINK_NETFILTER, NLM_F_DUMP } from '../netlink/uapi/netlink.ts'
import { Writer } from '../netlink/writer.ts'
import { countedElement, countedListAttributes } from '../nftables/bytes/counted-element.ts'
import { elementListAttributes } from '../nftables/bytes/element.ts'
import { beginNftablesMessage, NFGENMSG_LENGTH } from '../nftables/bytes/messages.ts'
import { nftablesVocabulary } from '../nftables/bytes/vocabulary.ts'
import { COUNTING_TABLE, type CountingTable, splitPair } from '../nftables/counting-table.ts'
import { NftablesDriver } from '../nftables/driver.ts'
import { PROTOCOL_NUMBERS, type TransportProtocol } from '../nftables/fields.ts'
import { nftFamily } from '../nftables/language.ts'
import type { NftSet } from '../nftables/types.ts'
import { CounterSet, type ListedElement, type ListedPart } from './counter-set.ts'
import type { Counted, CountedPair, CountedRefusal, Counts } from './traffic.ts'

/** Pairs that are put together before other work gets a turn. */
const PIECE = 1024

const PROTOCOLS: ReadonlyMap<number, TransportProtocol> = new Map(
  (Object.keys(PROTOCOL_NUMBERS) as TransportProtocol[]).map((name) => [PROTOCOL_NUMBERS[name], name]),
)

type PairName = Pick<CountedPair, 'id' | 'protocol' | 'frontend' | 'backend'>

export class CounterReader {
  readonly #table: CountingTable
  readonly #driver: NftablesDriver
  readonly #socket = new NetlinkSocket(NETLINK_NETFILTER, { vocabulary: nftablesVocabulary })
  readonly #client = new NetlinkClient(this.#socket.exchange)
  readonly #writer = new Writer()
  readonly #sets: Readonly<Record<'sent' | 'received' | 'begun' | 'refused' | 'refusedPorts', CounterSet>>
  /** What the keys of pairs say. */
  #names = new Map<Bytes, PairName>()
  #isClosed = false

  constructor(family: Family, table: CountingTable) {
    this.#table = table
    this.#driver = new NftablesDriver({ family: nftFamily(family), table: COUNTING_TABLE })
    const setFor = ({ timeoutMs }: NftSet) => new CounterSet(timeoutMs ?? Infinity)
    const { sent, received, begun, refused, refusedPorts } = table
    this.#sets = {
      sent: setFor(sent),
      received: setFor(received),
      begun: setFor(begun),
      refused: setFor(refused),
      refusedPorts: setFor(refusedPorts),
    }
  }

  /** One at a time. */
  async read(nowMs: number): Promise<Counted> {
    for (const name of ['sent', 'received', 'begun', 'refused', 'refusedPorts'] as const) {
      const parts = this.#receive(this.#table[name])
      await nextTurn()
      await this.#sets[name].follow(parts, nowMs)
    }
    const total = this.#readTotal()
    return { pairs: await this.#pairs(), refusals: this.#refusals(), total }
  }

  close(): void {
    this.#isClosed = true
    this.#socket.close()
    this.#driver.close()
  }

  /** The kernel's list as it comes; nothing of it is decoded yet. */
  #receive(set: NftSet): ListedPart[] {
    if (this.#isClosed) throw new Error('counting has ended')
    this.#writer.reset()
    beginNftablesMessage(this.#writer, 'getElements', this.#driver.family, NLM_F_DUMP)
    elementListAttributes.write(this.#writer, { table: COUNTING_TABLE, set: set.name })
    this.#writer.endMessage()
    const place = `read counters of set ${set.name} of table ${this.#driver.family} ${COUNTING_TABLE}`
    const lists = this.#client.dump(place, this.#writer.written(), contentOf, 'accept')
    return lists.map((content) => () => decodeList(set, content))
  }

  #readTotal(): Counts {
    if (this.#isClosed) throw new Error('counting has ended')
    const rules = this.#driver.readOutline()?.chains.get('count')?.rules ?? []
    const amounts = rules.flatMap(({ expressions }) =>
      expressions.flatMap((each) => (each.kind === 'counter' ? [each] : [])),
    )
    const [sent, received, begun] = amounts
    return {
      begun: Number(begun?.packets ?? 0),
      sentPackets: Number(sent?.packets ?? 0),
      sentBytes: Number(sent?.bytes ?? 0),
      receivedPackets: Number(received?.packets ?? 0),
      receivedBytes: Number(received?.bytes ?? 0),
    }
  }

  async #pairs(): Promise<CountedPair[]> {
    const { sent, received, begun } = this.#sets
    const names = new Map<Bytes, PairName>()
    const pairs: CountedPair[] = []
    const add = (key: Bytes) => {
      if (names.has(key)) return
      const name = this.#names.get(key) ?? nameOf(this.#table.sent, key)
      if (name === undefined) return
      names.set(key, name)
      const [out, back] = [sent.counts.get(key), received.counts.get(key)]
      pairs.push({
        id: name.id,
        protocol: name.protocol,
        frontend: name.frontend,
        backend: name.backend,
        begun: begun.counts.get(key)?.packets ?? 0,
        sentPackets: out?.packets ?? 0,
        sentBytes: out?.bytes ?? 0,
        receivedPackets: back?.packets ?? 0,
        receivedBytes: back?.bytes ?? 0,
      })
    }
    // Most are in all of them.
    for (const { counts } of [sent, received, begun]) await inPieces(counts.keys(), PIECE, add)
    this.#names = names
    return pairs
  }

  #refusals(): CountedRefusal[] {
    const { refused, refusedPorts } = this.#table
    return ([refused, refusedPorts] as const).flatMap((set, i) => {
      const { counts } = [this.#sets.refused, this.#sets.refusedPorts][i]!
      return [...counts].flatMap(([key, { packets }]) => refusalOf(set, key, packets) ?? [])
    })
  }
}

/** Copied: the buffer is used again for the next message. */
function contentOf({ view, start, end }: Message): DataView {
  const from = view.byteOffset + start + NFGENMSG_LENGTH
  return new DataView(view.buffer.slice(from, view.byteOffset + end))
}

function* decodeList(set: NftSet, content: DataView): Generator<ListedElement> {
  const { elements = [] } = countedListAttributes.read(content, 0, content.byteLength) ?? {}
  for (const each of elements) {
    const element = countedElement(set, each)
    if (element !== undefined) yield element
  }
}

function nameOf(set: NftSet, key: Bytes): PairName | undefined {
  const [dialled = '', port = '', number = '', answers = '', answersPort = ''] = splitPair(set, key)
  const protocol = PROTOCOLS.get(number.charCodeAt(0))
  if (protocol === undefined) return undefined
  return {
    id: key,
    protocol,
    frontend: { address: formatIp(dialled), port: portOf(port) },
    backend: { address: formatIp(answers), port: portOf(answersPort) },
  }
}

function refusalOf(set: NftSet, key: Bytes, packets: number): CountedRefusal | undefined {
  const fields = splitPair(set, key)
  const [number = '', port = ''] = fields.slice(-2)
  const protocol = PROTOCOLS.get(number.charCodeAt(0))
  if (protocol === undefined) return undefined
  return { protocol, address: fields.length === 3 ? formatIp(fields[0]!) : undefined, port: portOf(port), packets }
}

function portOf(field: string): number {
  return (field.charCodeAt(0) << 8) | field.charCodeAt(1)
}

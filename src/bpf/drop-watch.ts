// Which packets the kernel drops, where and why: the tracepoint skb:kfree_skb, seen by a program for the kernel's own machine.
//
// The program reads members of the kernel's structs at the places that its BTF says, and copies what it found into a queue. It runs
// only while this is open, for packets that are dropped.

import { Buffer } from 'node:buffer'
import { asBytes, formatIp } from '../lib/ip.ts'
import { mustCall } from '../system/libc.ts'
import { Attributes, bpf, memoryOf } from './call.ts'
import { KernelTypes } from './btf.ts'
import { Queue } from './queue.ts'
import {
  add,
  addRegister,
  assemble,
  call,
  exit,
  jump,
  jumpIf,
  jumpIfNull,
  keepBits,
  label,
  load,
  loadMap,
  move,
  set,
  STACK,
  type Step,
  store,
  storeValue,
} from './instructions.ts'
import { COMMAND, HELPER, PROGRAM_TYPE } from './uapi.ts'

export interface Drop {
  /** `NETFILTER_DROP`; undefined: the kernel is older than 5.17 and gives none. */
  readonly reason: string | undefined
  /** The address of the code that dropped it. */
  readonly location: bigint
  readonly source: string
  readonly sourcePort: number
  readonly destination: string
  readonly destinationPort: number
  /** `TCP`, `UDP`, or a number. */
  readonly protocol: string
  /** '' where the packet had none yet. */
  readonly link: string
  /** The network namespace, by the number of its file. 0: not known. */
  readonly namespace: number
}

/** What a value of the queue holds, by offset. */
const VALUE = { reason: 0, location: 8, header: 16, link: 64, namespace: 80, length: 88 } as const
/** An IPv6 header and the ports behind it. */
const HEADER_LENGTH = 44
const QUEUED = 256

export class DropWatch {
  readonly #queue: Queue
  readonly #tracepoint: number
  readonly #reasons: ReadonlyMap<number, string>

  /** Of packets that have one of these ports on either side. Throws where it is not allowed, or the kernel has no BTF. */
  constructor(ports: readonly number[]) {
    const types = KernelTypes.read()
    this.#reasons = types.namesOf('skb_drop_reason')
    this.#queue = new Queue('drops', VALUE.length, QUEUED)
    try {
      const program = loadTracer(planDropProgram(placesOf(types), ports, this.#queue.fd))
      try {
        const attributes = new Attributes().pointer(0, Buffer.from('kfree_skb\0')).number(8, program)
        this.#tracepoint = bpf('watch the tracepoint kfree_skb', COMMAND.openRawTracepoint, attributes)
      } finally {
        closeFd(program)
      }
    } catch (error) {
      this.#queue.close()
      throw error
    }
  }

  /** Those since the last time. */
  read(): Drop[] {
    return this.#queue.take().flatMap((value) => decodeDrop(value, this.#reasons) ?? [])
  }

  close(): void {
    closeFd(this.#tracepoint)
    this.#queue.close()
  }
}

/** Where the members are that the program reads. */
interface Places {
  readonly head: number
  readonly networkHeader: number
  readonly device: number
  readonly socket: number
  readonly deviceName: number
  readonly deviceNamespace: number
  readonly socketNamespace: number
  readonly namespaceNumber: number
  readonly hasReason: boolean
}

function placesOf(types: KernelTypes): Places {
  const place = (struct: string, path: string): number => {
    const offset = types.offsetOf(struct, path)
    if (offset === undefined) throw new Error(`Cannot watch dropped packets: this kernel has no ${struct}.${path}`)
    return offset
  }
  // Something of the program that listens, the packet, the place and, since 5.17, the reason.
  const hasReason = (types.argumentCountOf('btf_trace_kfree_skb') ?? 0) >= 4
  return {
    head: place('sk_buff', 'head'),
    networkHeader: place('sk_buff', 'network_header'),
    device: place('sk_buff', 'dev'),
    socket: place('sk_buff', 'sk'),
    deviceName: place('net_device', 'name'),
    deviceNamespace: place('net_device', 'nd_net.net'),
    socketNamespace: place('sock', '__sk_common.skc_net.net'),
    namespaceNumber: place('net', 'ns.inum'),
    hasReason,
  }
}

/** The value stands at the end of the stack, scratch memory before it. */
const BASE = -VALUE.length
const SCRATCH = BASE - 8
const IPV4 = 0x40
const IPV6 = 0x60
const IPV4_LENGTH = 20
const IPV6_LENGTH = 40

/** r6: the arguments, r7: the packet, r8: its network header, then its device. */
export function planDropProgram(places: Places, ports: readonly number[], queue: number): Step[] {
  /** Reads memory of the kernel, from the address in `from`, onto the stack. */
  const read = (at: number, length: number, from: 7 | 8 | 9, offset: number): Step[] => [
    move(1, STACK),
    add(1, at),
    set(2, length),
    move(3, from),
    add(3, offset),
    call(HELPER.readKernel),
  ]
  const pointerOf = (from: 7 | 8 | 9, offset: number, to: 8 | 9): Step[] => [
    ...read(SCRATCH, 8, from, offset),
    load(8, to, STACK, SCRATCH),
  ]
  const portsAt = (length: number): Step[] =>
    [0, 2].flatMap((side) => [
      load(2, 1, STACK, BASE + VALUE.header + length + side),
      ...ports.map((port) => jumpIf(1, asLoaded(port), 'found')),
    ])
  return [
    move(6, 1),
    load(8, 7, 6, 0),
    ...Array.from({ length: VALUE.length / 8 }, (_, i) => storeValue(8, STACK, BASE + i * 8, 0)),
    storeValue(8, STACK, SCRATCH, 0),
    ...(places.hasReason ? [load(8, 1, 6, 16), store(4, STACK, BASE + VALUE.reason, 1)] : []),
    load(8, 1, 6, 8),
    store(8, STACK, BASE + VALUE.location, 1),
    ...pointerOf(7, places.head, 8),
    storeValue(8, STACK, SCRATCH, 0),
    ...read(SCRATCH, 2, 7, places.networkHeader),
    load(2, 1, STACK, SCRATCH),
    addRegister(8, 1),
    ...read(BASE + VALUE.header, HEADER_LENGTH, 8, 0),
    load(2, 1, STACK, BASE + VALUE.header),
    keepBits(1, 0xf0),
    jumpIf(1, IPV4, 'ipv4'),
    jumpIf(1, IPV6, 'ipv6'),
    jump('end'),
    label('ipv4'),
    ...portsAt(IPV4_LENGTH),
    jump('end'),
    label('ipv6'),
    ...portsAt(IPV6_LENGTH),
    jump('end'),
    label('found'),
    ...pointerOf(7, places.device, 8),
    jumpIfNull(8, 'no device'),
    ...read(BASE + VALUE.link, 16, 8, places.deviceName),
    ...pointerOf(8, places.deviceNamespace, 9),
    jump('namespace'),
    label('no device'),
    ...pointerOf(7, places.socket, 8),
    jumpIfNull(8, 'push'),
    ...pointerOf(8, places.socketNamespace, 9),
    label('namespace'),
    jumpIfNull(9, 'push'),
    ...read(BASE + VALUE.namespace, 4, 9, places.namespaceNumber),
    label('push'),
    loadMap(1, queue),
    move(2, STACK),
    add(2, BASE),
    set(3, 0),
    call(HELPER.push),
    label('end'),
    set(0, 0),
    exit(),
  ]
}

/** Packets have ports in network order; this is how the machine loads them. */
function asLoaded(port: number): number {
  return ((port & 0xff) << 8) | (port >> 8)
}

/** Kernels let a program read their memory only if it is under a license that fits theirs, too. */
const LICENSE = 'Dual BSD/GPL\0'

function loadTracer(steps: readonly Step[]): number {
  const { bytes, count } = assemble(steps)
  const attributes = new Attributes()
    .number(0, PROGRAM_TYPE.rawTracepoint)
    .number(4, count)
    .pointer(8, memoryOf(bytes))
    .pointer(16, memoryOf(asBytes(LICENSE)))
    .name(48, 'drops')
  return bpf('load a BPF program for kfree_skb', COMMAND.loadProgram, attributes)
}

export function decodeDrop(value: Buffer, reasons: ReadonlyMap<number, string>): Drop | undefined {
  const header = value.subarray(VALUE.header, VALUE.header + HEADER_LENGTH)
  const version = header[0]! >> 4
  const isV4 = version === 4
  if (!isV4 && version !== 6) return undefined
  const ports = isV4 ? IPV4_LENGTH : IPV6_LENGTH
  const [source, destination, length] = isV4 ? [12, 16, 4] : [8, 24, 16]
  const address = (at: number) => formatIp(asBytes(header.toString('latin1', at, at + length)))
  const protocol = header[isV4 ? 9 : 6]!
  const reason = value.readUInt32LE(VALUE.reason)
  const link = value.toString('latin1', VALUE.link, VALUE.link + 16)
  return {
    reason: reasons.get(reason)?.replace(/^SKB_DROP_REASON_|^SKB_/, ''),
    location: value.readBigUInt64LE(VALUE.location),
    source: address(source),
    sourcePort: header.readUInt16BE(ports),
    destination: address(destination),
    destinationPort: header.readUInt16BE(ports + 2),
    protocol: { 6: 'TCP', 17: 'UDP' }[protocol] ?? String(protocol),
    link: link.slice(0, Math.max(0, link.indexOf('\0'))),
    namespace: value.readUInt32LE(VALUE.namespace),
  }
}

function closeFd(fd: number): void {
  mustCall('close a descriptor', 'close', fd)
}

// What the programs at connect() and sendmsg() have in common: they find what is dialled, and where its clients go.

import {
  add,
  addRegister,
  addTo,
  call,
  exit,
  jump,
  jumpIf,
  jumpIfLess,
  jumpIfNull,
  jumpIfSame,
  jumpUnless,
  jumpUnlessNull,
  jumpUnlessSame,
  label,
  load,
  loadMap,
  modulo,
  move,
  type Register,
  set,
  setWide,
  shiftLeft,
  STACK,
  type Step,
  store,
  storeValue,
} from '../bpf/instructions.ts'
import { BOUND, HELPER, SOCKET_ADDRESS } from '../bpf/uapi.ts'
import { CALL, CHOICE, type Layout, REMEMBERED, STICKY } from './layout.ts'

/** Descriptors of a family's maps. */
export interface FamilyMaps {
  readonly frontends: number
  readonly backends: number
  /** The backends that a flow of UDP may stay with. */
  readonly live: number
  /** What was seen to arrive from pods. */
  readonly seen: number
  /** How often each backend was chosen for each frontend. */
  readonly counts: number
}

/** What the programs work with. */
export interface ProgramContext {
  readonly maps4: FamilyMaps
  /** Absent: a machine without IPv6. */
  readonly maps6: FamilyMaps | undefined
  /** The map with the dialled and the chosen address of each socket of TCP. */
  readonly dialled: number
  /** The map with the flows of each socket of UDP. */
  readonly flows: number
  /** The map of calls of pods under way that the rules serve, and the queue of those that have an address. */
  readonly called: number
  readonly calls: number
  /** The cookie of the node's network namespace. A socket of another one belongs to a pod. */
  readonly nodeNetns: bigint
}

/** A choice for one family. */
export interface Choice extends Pick<ProgramContext, 'dialled' | 'flows' | 'called' | 'calls' | 'nodeNetns'> {
  /** Where the address is that the process dials. */
  readonly words: readonly number[]
  /** The layout of the maps. The keys have the last of those words, or all. */
  readonly layout: Layout
  readonly maps: FamilyMaps
  /** Where a socket has the address that it is bound to. */
  readonly bound: readonly number[]
}

/** The kinds of sockets: SOCK_STREAM and SOCK_DGRAM. */
export const SOCKET_TYPE = { TCP: 1, UDP: 2 } as const

/** The return value with which the kernel goes on with the call. */
export const GO_ON = 1

/** The second half of ::ffff:0:0/96, as a word that was read from memory in network order. */
export const MAPPED_WORD = 0xffff0000 | 0

/** Registers that calls preserve. */
export const CONTEXT: Register = 6
export const COUNT: Register = 7
export const BACKEND: Register = 8
export const LIST: Register = 8
export const NETNS: Register = 9

/** Offsets on the stack. Above them is room for the longest key. */
export const COOKIE_AT = -32
export const REMEMBERED_AT = COOKIE_AT - 4 * REMEMBERED.words
export const CALL_AT = REMEMBERED_AT - CALL.length

/** The words of the longest address. */
export const ADDRESS_FIELDS = [0, 1, 2, 3]

/** BPF_ANY: creates or replaces. */
const ANY = 0
/** BPF_EXIST: of a full queue, the oldest makes room. */
const MAKE_ROOM = 2

/** The 32-bit words of an address, as offsets in the context of a program. */
export const IP4_WORDS = [SOCKET_ADDRESS.ip4]
export const IP6_WORDS = ADDRESS_FIELDS.map((i) => SOCKET_ADDRESS.ip6 + 4 * i)

/** The same of the address that a socket is bound to. */
export const BOUND4 = [BOUND.ip4]
export const BOUND6 = ADDRESS_FIELDS.map((i) => BOUND.ip6 + 4 * i)

/** The words of an address that keys have. */
export function keyWordsOf({ words, layout }: Choice): readonly number[] {
  return words.slice(-layout.port / 4)
}

/** The prologue of each program: saves the context, and leaves sockets of other protocols alone. */
export function onlyFor(type: number, protocol: number): Step[] {
  return [
    move(CONTEXT, 1),
    load(4, 0, CONTEXT, SOCKET_ADDRESS.type),
    jumpUnless(0, type, 'go on'),
    load(4, 0, CONTEXT, SOCKET_ADDRESS.protocol),
    jumpUnless(0, protocol, 'go on'),
  ]
}

/** The epilogue. */
export function goOn(): Step[] {
  return [label('go on'), set(0, GO_ON), exit()]
}

/** Leaves the namespace of the socket, and the number and length of the list that its clients get. */
export function findList(choice: Choice): Step[] {
  const to = (name: string) => `${name}, IPv${choice.layout.family}`
  return [
    move(1, CONTEXT),
    call(HELPER.netnsCookie),
    move(NETNS, 0),
    ...findFrontend(choice, keyWordsOf(choice), to('found')),
    label(to('found')),
    setWide(1, choice.nodeNetns),
    jumpIfSame(NETNS, 1, to('node')),
    load(4, COUNT, 0, CHOICE.podsCount),
    load(4, LIST, 0, CHOICE.podsList),
    jump(to('listed')),
    label(to('node')),
    load(4, COUNT, 0, CHOICE.nodeCount),
    load(4, LIST, 0, CHOICE.nodeList),
    label(to('listed')),
    jumpIf(COUNT, 0, 'go on'),
  ]
}

/**
 * Leaves a pointer to the chosen backend. Of a pod, a call goes by the rules until one like it was seen to arrive: that is what
 * `leave` is for. With affinity, the backend is that to which the rules led.
 */
export function choose(choice: Choice, leave: readonly Step[]): Step[] {
  const { layout, maps, nodeNetns } = choice
  const to = (name: string) => `${name}, IPv${layout.family}`
  return [
    setWide(1, nodeNetns),
    jumpUnlessSame(NETNS, 1, to('look')),
    jumpUnless(COUNT, STICKY | 0, to('choose')),
    label(to('look')),
    ...writeCall(choice, keyWordsOf(choice)),
    loadMap(1, maps.seen),
    move(2, STACK),
    add(2, CALL_AT),
    call(HELPER.lookUp),
    jumpIfNull(0, to('unseen')),
    ...loadTime(NETNS, 0, layout.trustedUntil),
    jumpIf(COUNT, STICKY | 0, to('sticky')),
    call(HELPER.monotonicTime),
    jumpIfLess(0, NETNS, to('choose')),
    jump(to('unseen')),
    label(to('sticky')),
    // It was seen when there was no affinity yet.
    load(2, 1, 0, layout.port),
    jumpIf(1, 0, to('unseen')),
    move(BACKEND, 0),
    call(HELPER.monotonicTime),
    jumpIfLess(0, NETNS, to('take')),
    label(to('unseen')),
    ...leave,
    label(to('choose')),
    call(HELPER.random),
    modulo(0, COUNT),
    add(0, 1),
    store(4, STACK, -8, LIST),
    store(4, STACK, -4, 0),
    ...lookUp(maps.backends, -8),
    move(BACKEND, 0),
    label(to('take')),
  ]
}

/** Counts the chosen backend, in the place on the stack where the call was. Without room, the one that was used least makes some. */
export function countChoice(choice: Choice): Step[] {
  const { layout, maps } = choice
  const { keyLength } = layout.counts
  const backend = CALL_AT + layout.frontends.keyLength
  const value = CALL_AT + keyLength
  const to = (name: string) => `${name}, IPv${layout.family}`
  return [
    ...keyWordsOf(choice).flatMap((word, i) => [
      load(4, 1, CONTEXT, word),
      store(4, STACK, CALL_AT + 4 * i, 1),
      load(4, 1, BACKEND, 4 * i),
      store(4, STACK, backend + 4 * i, 1),
    ]),
    ...writePortAndProtocol(CALL_AT, layout),
    load(2, 1, BACKEND, layout.port),
    store(4, STACK, backend + layout.port, 1),
    loadMap(1, maps.counts),
    move(2, STACK),
    add(2, CALL_AT),
    call(HELPER.lookUp),
    jumpIfNull(0, to('the first')),
    set(1, 1),
    addTo(0, 0, 1),
    jump(to('counted')),
    label(to('the first')),
    storeValue(8, STACK, value, 1),
    ...update(maps.counts, CALL_AT, value),
    label(to('counted')),
  ]
}

/** Puts the chosen backend in the place of what was dialled. */
export function replaceDialled(choice: Choice): Step[] {
  return [
    ...keyWordsOf(choice).flatMap((word, i) => [load(4, 1, BACKEND, 4 * i), store(4, CONTEXT, word, 1)]),
    load(2, 1, BACKEND, choice.layout.port),
    store(4, CONTEXT, SOCKET_ADDRESS.port, 1),
  ]
}

/** Writes the first part of a call to the stack. */
function writeCall({ layout }: Choice, keyWords: readonly number[]): Step[] {
  const dialled = CALL_AT + CALL.dialled
  const rest = (CALL.family - CALL.dialled - layout.frontends.keyLength) / 4
  return [
    store(8, STACK, CALL_AT + CALL.netns, NETNS),
    ...keyWords.flatMap((word, i) => [load(4, 1, CONTEXT, word), store(4, STACK, dialled + 4 * i, 1)]),
    ...writePortAndProtocol(dialled, layout),
    ...Array.from({ length: rest }, (_, i) => storeValue(4, STACK, dialled + layout.frontends.keyLength + 4 * i, 0)),
    storeValue(4, STACK, CALL_AT + CALL.family, layout.family),
    store(8, STACK, CALL_AT + CALL.list, LIST),
  ]
}

/** Tells the proxy of the call on the stack. */
export function report(calls: number): Step[] {
  return [loadMap(1, calls), move(2, STACK), add(2, CALL_AT), set(3, MAKE_ROOM), call(HELPER.push)]
}

/** From where 64 bits need not be aligned. */
function loadTime(to: Register, from: Register, offset: number): Step[] {
  return [load(4, to, from, offset + 4), shiftLeft(to, 32), load(4, 1, from, offset), addRegister(to, 1)]
}

/** Leaves a pointer to the value in r0: of the address, or of a node port where the address is one of the node. */
function findFrontend({ layout, maps, nodeNetns, bound }: Choice, keyWords: readonly number[], found: string): Step[] {
  const key = -layout.frontends.keyLength
  const name = `an address of the node, IPv${layout.family}`
  const portAndProtocol = writePortAndProtocol(key, layout)
  return [
    ...keyWords.flatMap((word, i) => [load(4, 0, CONTEXT, word), store(4, STACK, key + 4 * i, 0)]),
    ...portAndProtocol,
    loadMap(1, maps.frontends),
    move(2, STACK),
    add(2, key),
    call(HELPER.lookUp),
    jumpUnlessNull(0, found),
    storeValue(4, STACK, key + layout.port, 0),
    ...lookUp(maps.frontends, key),
    load(4, 1, 0, CHOICE.podsList),
    jumpIf(1, 0, name),
    // A loopback address: only for the node itself, and not for a socket that is bound to one, from which no backend can be reached.
    setWide(1, nodeNetns),
    jumpUnlessSame(NETNS, 1, 'go on'),
    load(8, 1, CONTEXT, SOCKET_ADDRESS.socket),
    ...bound.flatMap((at) => [load(4, 2, 1, at), jumpUnless(2, 0, 'go on')]),
    label(name),
    ...keyWords.map((_, i) => storeValue(4, STACK, key + 4 * i, 0)),
    ...portAndProtocol,
    ...lookUp(maps.frontends, key),
  ]
}

/** Writes the cookie of the socket to the stack. */
export function socketKey(): Step[] {
  return [move(1, CONTEXT), call(HELPER.socketCookie), store(8, STACK, COOKIE_AT, 0)]
}

function writePortAndProtocol(key: number, layout: Layout): Step[] {
  return [
    load(4, 1, CONTEXT, SOCKET_ADDRESS.port),
    store(2, STACK, key + layout.port, 1),
    load(4, 1, CONTEXT, SOCKET_ADDRESS.protocol),
    store(2, STACK, key + layout.protocol, 1),
  ]
}

/** Sets an element. Key and value are on the stack; r0 is 0 where there was room. */
export function update(map: number, keyAt: number, valueAt: number): Step[] {
  return [
    loadMap(1, map),
    move(2, STACK),
    add(2, keyAt),
    move(3, STACK),
    add(3, valueAt),
    set(4, ANY),
    call(HELPER.update),
  ]
}

export function remove(map: number, keyAt: number): Step[] {
  return [loadMap(1, map), move(2, STACK), add(2, keyAt), call(HELPER.delete)]
}

/** Leaves a pointer to the value in r0. The key is on the stack. */
export function lookUp(map: number, keyAt: number): Step[] {
  return [loadMap(1, map), move(2, STACK), add(2, keyAt), call(HELPER.lookUp), jumpIfNull(0, 'go on')]
}

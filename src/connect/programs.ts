// The programs that the kernel runs when a process calls connect() or getpeername().
//
// The first looks up the address and port that the process dials, and replaces them by a random backend. If anything is missing - an
// entry, a backend, memory - it leaves the call as it is, and the rules of the mode translate its packets. The second gives a
// process the address that it dialled. One at changes of TCP's state says which address the calls got that the rules serve for the time being (`witness.ts`). A last one deletes the entry that this needs when the process closes its socket.

import {
  add,
  addRegister,
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
import { BOUND, HELPER, type Hook, SOCKET, SOCKET_ADDRESS, TCP_CONNECTS, TCP_STATE } from '../bpf/uapi.ts'
import { CALL, CALLED_LENGTH, CHOICE, IPPROTO, type Layout, layouts, REMEMBERED, STICKY } from './layout.ts'

/** Descriptors of a family's maps. */
export interface FamilyMaps {
  readonly frontends: number
  readonly backends: number
  /** What was seen to arrive from pods. */
  readonly seen: number
}

/** What the programs work with. */
export interface ProgramContext {
  readonly maps4: FamilyMaps
  /** Absent: a machine without IPv6. */
  readonly maps6: FamilyMaps | undefined
  /** The map with the dialled and the chosen address of each socket. */
  readonly dialled: number
  /** The map of calls of pods under way that the rules serve, and the queue of those that have an address. */
  readonly called: number
  readonly calls: number
  /** The cookie of the node's network namespace. A socket of another one belongs to a pod. */
  readonly nodeNetns: bigint
}

const SOCK_STREAM = 1

/** The return value with which the kernel goes on with the call. */
const GO_ON = 1

/** The second half of ::ffff:0:0/96, as a word that was read from memory in network order. */
const MAPPED_WORD = 0xffff0000 | 0

/** Registers that calls preserve. */
const CONTEXT: Register = 6
const COUNT: Register = 7
const BACKEND: Register = 8
const LIST: Register = 8
const NETNS: Register = 9

/** Offsets on the stack. Above them is room for the longest key. */
const COOKIE_AT = -32
const REMEMBERED_AT = COOKIE_AT - 4 * REMEMBERED.words
const CALL_AT = REMEMBERED_AT - CALL.length

/** The words of the longest address. */
const ADDRESS_FIELDS = [0, 1, 2, 3]

/** BPF_ANY: creates or replaces. */
const ANY = 0
/** BPF_EXIST: of a full queue, the oldest makes room. */
const MAKE_ROOM = 2

/** The 32-bit words of an address, as offsets in the context of a program. */
const IP4_WORDS = [SOCKET_ADDRESS.ip4]
const IP6_WORDS = ADDRESS_FIELDS.map((i) => SOCKET_ADDRESS.ip6 + 4 * i)

export function planPrograms(context: ProgramContext): Partial<Record<Hook, readonly Step[]>> {
  const { maps4, maps6, dialled } = context
  const programs = {
    connect4: [
      ...onlyTcp(SOCKET_ADDRESS),
      ...choose({ ...context, words: IP4_WORDS, layout: layouts[4], maps: maps4, bound: [BOUND.ip4] }),
      ...goOn(),
    ],
    getpeername4: getpeername(IP4_WORDS, dialled),
    release: release(dialled),
    stateOfTcp: reportCall(context),
  }
  if (maps6 === undefined) return programs
  return { ...programs, connect6: connect6(context, maps6), getpeername6: getpeername(IP6_WORDS, dialled) }
}

/** Sockets of IPv6 can also dial IPv4 addresses, written as ::ffff:10.0.0.1. */
function connect6(context: ProgramContext, maps6: FamilyMaps): Step[] {
  const prefix = [0, 0, MAPPED_WORD].flatMap((value, i) => [
    load(4, 0, CONTEXT, IP6_WORDS[i]!),
    jumpUnless(0, value, 'IPv6'),
  ])
  const common = { ...context, words: IP6_WORDS, bound: ADDRESS_FIELDS.map((i) => BOUND.ip6 + 4 * i) }
  return [
    ...onlyTcp(SOCKET_ADDRESS),
    ...prefix,
    ...choose({ ...common, layout: layouts[4], maps: context.maps4 }),
    set(0, GO_ON),
    exit(),
    label('IPv6'),
    ...choose({ ...common, layout: layouts[6], maps: maps6 }),
    ...goOn(),
  ]
}

/** The prologue of each program: saves the context, and leaves sockets of other protocols alone. */
function onlyTcp({ type, protocol }: Readonly<Record<'type' | 'protocol', number>>): Step[] {
  return [
    move(CONTEXT, 1),
    load(4, 0, CONTEXT, type),
    jumpUnless(0, SOCK_STREAM, 'go on'),
    load(4, 0, CONTEXT, protocol),
    jumpUnless(0, IPPROTO.TCP, 'go on'),
  ]
}

function goOn(): Step[] {
  return [label('go on'), set(0, GO_ON), exit()]
}

interface Choice extends Pick<ProgramContext, 'dialled' | 'called' | 'nodeNetns'> {
  /** Where the address is that the process dials. */
  readonly words: readonly number[]
  /** The layout of the maps. The keys have the last of those words, or all. */
  readonly layout: Layout
  readonly maps: FamilyMaps
  /** Where a socket has the address that it is bound to. */
  readonly bound: readonly number[]
}

function choose(choice: Choice): Step[] {
  const { words, layout, maps, dialled, nodeNetns } = choice
  const keyWords = words.slice(-layout.port / 4)
  const to = (name: string) => `${name}, IPv${layout.family}`
  return [
    move(1, CONTEXT),
    call(HELPER.netnsCookie),
    move(NETNS, 0),
    ...findFrontend(choice, keyWords, to('found')),
    label(to('found')),
    setWide(1, nodeNetns),
    jumpIfSame(NETNS, 1, to('node')),
    load(4, COUNT, 0, CHOICE.podsCount),
    load(4, LIST, 0, CHOICE.podsList),
    jumpIf(COUNT, 0, 'go on'),
    jump(to('look')),
    label(to('node')),
    load(4, COUNT, 0, CHOICE.nodeCount),
    load(4, LIST, 0, CHOICE.nodeList),
    jumpIf(COUNT, 0, 'go on'),
    jumpUnless(COUNT, STICKY | 0, to('choose')),
    label(to('look')),
    ...writeCall(choice, keyWords),
    ...leaveUnlessSeen(choice, { choose: to('choose'), take: to('take') }),
    label(to('choose')),
    call(HELPER.random),
    modulo(0, COUNT),
    add(0, 1),
    store(4, STACK, -8, LIST),
    store(4, STACK, -4, 0),
    ...lookUp(maps.backends, -8),
    move(BACKEND, 0),
    label(to('take')),
    ...writeBoth(words, layout),
    ...remember(dialled),
    ...keyWords.flatMap((word, i) => [load(4, 1, BACKEND, 4 * i), store(4, CONTEXT, word, 1)]),
    load(2, 1, BACKEND, layout.port),
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

/** A call goes by the rules until one like it was seen to arrive. With affinity, the backend is that to which the rules led. */
function leaveUnlessSeen(
  { layout, maps, called }: Choice,
  { choose, take }: Record<'choose' | 'take', string>,
): Step[] {
  const unseen = `unseen, IPv${layout.family}`
  const sticky = `sticky, IPv${layout.family}`
  return [
    loadMap(1, maps.seen),
    move(2, STACK),
    add(2, CALL_AT),
    call(HELPER.lookUp),
    jumpIfNull(0, unseen),
    ...loadTime(NETNS, 0, layout.trustedUntil),
    jumpIf(COUNT, STICKY | 0, sticky),
    call(HELPER.monotonicTime),
    jumpIfLess(0, NETNS, choose),
    jump(unseen),
    label(sticky),
    // It was seen when there was no affinity yet.
    load(2, 1, 0, layout.port),
    jumpIf(1, 0, unseen),
    move(BACKEND, 0),
    call(HELPER.monotonicTime),
    jumpIfLess(0, NETNS, take),
    label(unseen),
    ...socketKey(),
    ...update(called, COOKIE_AT, CALL_AT),
    jump('go on'),
  ]
}

/** From where 64 bits need not be aligned. */
function loadTime(to: Register, from: Register, offset: number): Step[] {
  return [load(4, to, from, offset + 4), shiftLeft(to, 32), load(4, 1, from, offset), addRegister(to, 1)]
}

/** Of each call that was left to the rules, reports what address and port the socket got. */
function reportCall({ called, calls }: ProgramContext): Step[] {
  const words = ADDRESS_FIELDS.map((i) => 4 * i)
  return [
    move(CONTEXT, 1),
    load(4, 0, CONTEXT, TCP_STATE.what),
    jumpUnless(0, TCP_CONNECTS, 'go on'),
    ...socketKey(),
    ...lookUp(called, COOKIE_AT),
    ...Array.from({ length: CALLED_LENGTH / 8 }, (_, i) => [
      load(8, 1, 0, 8 * i),
      store(8, STACK, CALL_AT + 8 * i, 1),
    ]).flat(),
    load(4, 1, 0, CALL.family),
    jumpIf(1, 6, 'IPv6'),
    load(4, 1, CONTEXT, TCP_STATE.localIp4),
    store(4, STACK, CALL_AT + CALL.local, 1),
    ...words.slice(1).map((at) => storeValue(4, STACK, CALL_AT + CALL.local + at, 0)),
    jump('port'),
    label('IPv6'),
    ...words.flatMap((at) => [
      load(4, 1, CONTEXT, TCP_STATE.localIp6 + at),
      store(4, STACK, CALL_AT + CALL.local + at, 1),
    ]),
    label('port'),
    load(4, 1, CONTEXT, TCP_STATE.localPort),
    store(4, STACK, CALL_AT + CALL.localPort, 1),
    storeValue(4, STACK, CALL_AT + CALL.localPort + 4, 0),
    loadMap(1, calls),
    move(2, STACK),
    add(2, CALL_AT),
    set(3, MAKE_ROOM),
    call(HELPER.push),
    ...remove(called, COOKIE_AT),
    ...goOn(),
  ]
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

/** Writes the dialled and the chosen address to the stack. An IPv4 address in an IPv6 socket keeps the words before it. */
function writeBoth(words: readonly number[], layout: Layout): Step[] {
  const kept = words.length - layout.port / 4
  const write = (field: number, from: Register) => store(4, STACK, REMEMBERED_AT + 4 * field, from)
  return [
    // The verifier wants every word written, also where an address is shorter.
    ...ADDRESS_FIELDS.slice(words.length).flatMap((i) => [
      storeValue(4, STACK, REMEMBERED_AT + 4 * (REMEMBERED.dialled + i), 0),
      storeValue(4, STACK, REMEMBERED_AT + 4 * (REMEMBERED.chosen + i), 0),
    ]),
    ...words.flatMap((word, i) => [
      load(4, 1, CONTEXT, word),
      write(REMEMBERED.dialled + i, 1),
      ...(i < kept ? [] : [load(4, 1, BACKEND, 4 * (i - kept))]),
      write(REMEMBERED.chosen + i, 1),
    ]),
    load(4, 1, CONTEXT, SOCKET_ADDRESS.port),
    write(REMEMBERED.dialledPort, 1),
    load(2, 1, BACKEND, layout.port),
    write(REMEMBERED.chosenPort, 1),
  ]
}

/** A process may have connected the socket again, to another address: the entry counts only while the peer is the chosen backend. */
function getpeername(words: readonly number[], dialled: number): Step[] {
  const fields = [
    ...words.map((word, i) => ({ at: word, dialled: REMEMBERED.dialled + i, chosen: REMEMBERED.chosen + i })),
    { at: SOCKET_ADDRESS.port, dialled: REMEMBERED.dialledPort, chosen: REMEMBERED.chosenPort },
  ]
  return [
    move(CONTEXT, 1),
    ...recall(dialled),
    ...fields.flatMap(({ at, chosen }) => [
      load(4, 1, CONTEXT, at),
      load(4, 2, 0, 4 * chosen),
      jumpUnlessSame(1, 2, 'go on'),
    ]),
    ...fields.flatMap(({ at, dialled }) => [load(4, 1, 0, 4 * dialled), store(4, CONTEXT, at, 1)]),
    ...goOn(),
  ]
}

/** Stores the entry of the socket. If the map is full, the call goes on unchanged. */
function remember(dialled: number): Step[] {
  return [...socketKey(), ...update(dialled, COOKIE_AT, REMEMBERED_AT), jumpUnless(0, 0, 'go on')]
}

/** Deletes the entry of a socket when its last descriptor is closed. */
function release(dialled: number): Step[] {
  return [...onlyTcp(SOCKET), ...socketKey(), ...remove(dialled, COOKIE_AT), ...goOn()]
}

/** Leaves a pointer to the entry of the socket in r0. */
function recall(dialled: number): Step[] {
  return [...socketKey(), ...lookUp(dialled, COOKIE_AT)]
}

/** Writes the cookie of the socket to the stack. */
function socketKey(): Step[] {
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
function update(map: number, keyAt: number, valueAt: number): Step[] {
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

function remove(map: number, keyAt: number): Step[] {
  return [loadMap(1, map), move(2, STACK), add(2, keyAt), call(HELPER.delete)]
}

/** Leaves a pointer to the value in r0. The key is on the stack. */
function lookUp(map: number, keyAt: number): Step[] {
  return [loadMap(1, map), move(2, STACK), add(2, keyAt), call(HELPER.lookUp), jumpIfNull(0, 'go on')]
}

// The programs that the kernel runs when a process calls connect() or getpeername().
//
// The first looks up the address and port that the process dials, and replaces them by a random backend. If anything is missing - an
// entry, a backend, memory - it leaves the call as it is, and the rules of the mode translate its packets. The second gives a
// process the address that it dialled. A third deletes the entry that this needs when the process closes its socket.

import {
  add,
  call,
  exit,
  jumpIfNull,
  jumpUnless,
  jumpUnlessSame,
  label,
  load,
  loadMap,
  modulo,
  move,
  type Register,
  set,
  STACK,
  type Step,
  store,
  storeValue,
} from '../bpf/instructions.ts'
import { HELPER, type Hook, SOCKET, SOCKET_ADDRESS } from '../bpf/uapi.ts'
import { type Layout, layouts, REMEMBERED } from './layout.ts'

/** Descriptors of the maps that the programs use. */
export interface Maps {
  readonly backends4: number
  /** Absent: a machine without IPv6. */
  readonly backends6: number | undefined
  /** The dialled and the chosen address of each socket. */
  readonly dialled: number
}

const SOCK_STREAM = 1
const IPPROTO_TCP = 6

/** The return value with which the kernel goes on with the call. */
const GO_ON = 1

/** The second half of ::ffff:0:0/96, as a word that was read from memory in network order. */
const MAPPED_WORD = 0xffff0000 | 0

/** Registers that calls preserve. */
const CONTEXT: Register = 6
const COUNT: Register = 7
const BACKEND: Register = 8

/** Offsets on the stack. Above them is room for the longest key of backends. */
const COOKIE_AT = -32
const REMEMBERED_AT = COOKIE_AT - 4 * REMEMBERED.words

/** The words of the longest address. */
const ADDRESS_FIELDS = [0, 1, 2, 3]

/** BPF_ANY: creates or replaces. */
const ANY = 0

/** The 32-bit words of an address, as offsets in the context of a program. */
const IP4_WORDS = [SOCKET_ADDRESS.ip4]
const IP6_WORDS = ADDRESS_FIELDS.map((i) => SOCKET_ADDRESS.ip6 + 4 * i)

export function planPrograms({ backends4, backends6, dialled }: Maps): Partial<Record<Hook, readonly Step[]>> {
  const programs = {
    connect4: connect4(backends4, dialled),
    getpeername4: getpeername(IP4_WORDS, dialled),
    release: release(dialled),
  }
  if (backends6 === undefined) return programs
  return {
    ...programs,
    connect6: connect6(backends4, backends6, dialled),
    getpeername6: getpeername(IP6_WORDS, dialled),
  }
}

function connect4(backends: number, dialled: number): Step[] {
  return [...onlyTcp(SOCKET_ADDRESS), ...choose({ words: IP4_WORDS, layout: layouts[4], backends, dialled }), ...goOn()]
}

/** Sockets of IPv6 can also dial IPv4 addresses, written as ::ffff:10.0.0.1. */
function connect6(backends4: number, backends6: number, dialled: number): Step[] {
  const prefix = [0, 0, MAPPED_WORD].flatMap((value, i) => [
    load(4, 0, CONTEXT, IP6_WORDS[i]!),
    jumpUnless(0, value, 'IPv6'),
  ])
  return [
    ...onlyTcp(SOCKET_ADDRESS),
    ...prefix,
    ...choose({ words: IP6_WORDS, layout: layouts[4], backends: backends4, dialled }),
    set(0, GO_ON),
    exit(),
    label('IPv6'),
    ...choose({ words: IP6_WORDS, layout: layouts[6], backends: backends6, dialled }),
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
    jumpUnless(0, IPPROTO_TCP, 'go on'),
  ]
}

function goOn(): Step[] {
  return [label('go on'), set(0, GO_ON), exit()]
}

interface Choice {
  /** Where the address is that the process dials. */
  readonly words: readonly number[]
  /** The layout of the map. Its keys have the last of those words, or all. */
  readonly layout: Layout
  readonly backends: number
  readonly dialled: number
}

function choose({ words, layout, backends, dialled }: Choice): Step[] {
  const key = -layout.keyLength
  const keyWords = words.slice(-layout.port / 4)
  return [
    ...keyWords.flatMap((word, i) => [load(4, 0, CONTEXT, word), store(4, STACK, key + 4 * i, 0)]),
    load(4, 0, CONTEXT, SOCKET_ADDRESS.port),
    store(2, STACK, key + layout.port, 0),
    storeValue(2, STACK, key + layout.place, 0),
    ...lookUp(backends, key),
    load(4, COUNT, 0, 0),
    call(HELPER.random),
    // Modulo zero leaves the random number. That is fine: with no backends, no place has an element.
    modulo(0, COUNT),
    add(0, 1),
    store(2, STACK, key + layout.place, 0),
    ...lookUp(backends, key),
    move(BACKEND, 0),
    ...writeBoth(words, layout),
    ...remember(dialled),
    ...keyWords.flatMap((word, i) => [load(4, 1, BACKEND, 4 * i), store(4, CONTEXT, word, 1)]),
    load(2, 1, BACKEND, layout.port),
    store(4, CONTEXT, SOCKET_ADDRESS.port, 1),
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
  return [
    ...socketKey(),
    loadMap(1, dialled),
    move(2, STACK),
    add(2, COOKIE_AT),
    move(3, STACK),
    add(3, REMEMBERED_AT),
    set(4, ANY),
    call(HELPER.update),
    jumpUnless(0, 0, 'go on'),
  ]
}

/** Deletes the entry of a socket when its last descriptor is closed. */
function release(dialled: number): Step[] {
  return [
    ...onlyTcp(SOCKET),
    ...socketKey(),
    loadMap(1, dialled),
    move(2, STACK),
    add(2, COOKIE_AT),
    call(HELPER.delete),
    ...goOn(),
  ]
}

/** Leaves a pointer to the entry of the socket in r0. */
function recall(dialled: number): Step[] {
  return [...socketKey(), ...lookUp(dialled, COOKIE_AT)]
}

/** Writes the cookie of the socket to the stack. */
function socketKey(): Step[] {
  return [move(1, CONTEXT), call(HELPER.socketCookie), store(8, STACK, COOKIE_AT, 0)]
}

/** Leaves a pointer to the value in r0. The key is on the stack. */
function lookUp(map: number, keyAt: number): Step[] {
  return [loadMap(1, map), move(2, STACK), add(2, keyAt), call(HELPER.lookUp), jumpIfNull(0, 'go on')]
}

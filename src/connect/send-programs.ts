// The programs that the kernel runs when a process sends datagrams without connect(), and when it receives the answers.
//
// The first replaces the address and port that are dialled by those of a backend, and remembers which one: a flow, which is what one socket
// sends to one frontend, stays with its backend while that is in the list. The second says of an answer that it comes from the address that was dialled. A
// flow that began by the rules stays with them. Connected sockets are left alone: `docs/adr/0018-datagrams.md`.

import {
  add,
  exit,
  jump,
  jumpIf,
  jumpUnless,
  jumpUnlessNull,
  jumpUnlessSame,
  label,
  load,
  loadMap,
  move,
  type Register,
  set,
  STACK,
  type Step,
  store,
  storeValue,
  call,
  jumpIfNull,
} from '../bpf/instructions.ts'
import { HELPER, type Hook, SOCKET_ADDRESS, SOCKET_STATE, UDP_IS_CONNECTED, BOUND } from '../bpf/uapi.ts'
import * as steps from './choice-steps.ts'
import { CALL, FLOW, FLOWS, IPPROTO, layouts } from './layout.ts'

const { ADDRESS_FIELDS, BACKEND, CALL_AT, CONTEXT, COOKIE_AT, IP4_WORDS, IP6_WORDS, LIST } = steps

/** Where one of the socket's flows is, in memory of the map, when the backend is chosen; before, these registers have the count and the namespace. */
const ALL: Register = 7
const MINE: Register = 9

/** Offsets on the stack, in the place where programs of TCP have what they remember. */
const DIALLED_AT = steps.REMEMBERED_AT
const LIST_AT = DIALLED_AT + 20
const ALL_AT = DIALLED_AT + 24
const MINE_AT = DIALLED_AT + 32
/** A socket without flows. */
const NEW_AT = CALL_AT - FLOWS.valueLength

const FLOW_NUMBERS = Array.from({ length: FLOWS.count }, (_, i) => i)

export function planSendPrograms(context: steps.ProgramContext): Partial<Record<Hook, readonly Step[]>> {
  const { maps4, maps6, flows } = context
  const programs = {
    // Also for sockets of IPv6 that send to ::ffff:10.0.0.1. Their answers come to the program for IPv6.
    sendmsg4: send({ ...context, words: IP4_WORDS, layout: layouts[4], maps: maps4, bound: steps.BOUND4 }),
    recvmsg4: receive(IP4_WORDS, flows),
    recvmsg6: receive(IP6_WORDS, flows),
  }
  if (maps6 === undefined) return programs
  const choice = { ...context, words: IP6_WORDS, layout: layouts[6], maps: maps6, bound: steps.BOUND6 }
  return { ...programs, sendmsg6: send(choice) }
}

function send(choice: steps.Choice): Step[] {
  const leave = [...reportCall(choice), jump('by the rules')]
  return [
    ...steps.onlyFor(steps.SOCKET_TYPE.UDP, IPPROTO.UDP),
    load(8, 1, CONTEXT, SOCKET_ADDRESS.socket),
    load(4, 1, 1, SOCKET_STATE),
    jumpIf(1, UDP_IS_CONNECTED, 'go on'),
    ...steps.findList(choice),
    store(4, STACK, LIST_AT, LIST),
    ...writeDialled(choice),
    ...findFlow(choice),
    label('known'),
    store(8, STACK, MINE_AT, 0),
    load(4, 1, 0, FLOW.list),
    jumpIf(1, 0, 'go on'),
    jumpUnlessSame(1, LIST, 'choose'),
    ...goWhereItWent(choice),
    label('new'),
    store(8, STACK, MINE_AT, 0),
    label('choose'),
    ...steps.choose(choice, leave),
    load(8, ALL, STACK, ALL_AT),
    load(8, MINE, STACK, MINE_AT),
    storeValue(4, MINE, FLOW.chosenPort, 0),
    ...leaveIfTaken(choice),
    ...writeFlow(choice),
    ...steps.countChoice(choice),
    ...steps.replaceDialled(choice),
    jump('go on'),
    label('by the rules'),
    load(8, MINE, STACK, MINE_AT),
    storeValue(4, MINE, FLOW.list, 0),
    storeValue(4, MINE, FLOW.chosenPort, 0),
    ...writeDialledOf(MINE),
    ...steps.goOn(),
  ]
}

/** Writes to the stack what is dialled, an IPv4 address as ::ffff:10.0.0.1. */
function writeDialled(choice: steps.Choice): Step[] {
  const keyWords = steps.keyWordsOf(choice)
  const missing = ADDRESS_FIELDS.length - keyWords.length
  return [
    ...[0, 0, steps.MAPPED_WORD].slice(0, missing).map((value, i) => storeValue(4, STACK, DIALLED_AT + 4 * i, value)),
    ...keyWords.flatMap((word, i) => [load(4, 1, CONTEXT, word), store(4, STACK, DIALLED_AT + 4 * (missing + i), 1)]),
    load(4, 1, CONTEXT, SOCKET_ADDRESS.port),
    store(4, STACK, DIALLED_AT + 16, 1),
  ]
}

/** Not beyond the last one: without CAP_PERFMON, the kernel allows no pointer there. */
function toNext(flow: number): Step[] {
  return flow === FLOWS.count - 1 ? [] : [add(0, FLOW.length)]
}

/** Goes on at `known` or at `new` with a pointer to the flow in r0. Without room for one, the rules serve. */
function findFlow({ flows }: steps.Choice): Step[] {
  const lookUp = [loadMap(1, flows), move(2, STACK), add(2, COOKIE_AT), call(HELPER.lookUp)]
  return [
    ...steps.socketKey(),
    ...lookUp,
    jumpUnlessNull(0, 'socket'),
    ...Array.from({ length: FLOWS.valueLength / 8 }, (_, i) => storeValue(8, STACK, NEW_AT + 8 * i, 0)),
    ...steps.update(flows, COOKIE_AT, NEW_AT),
    jumpUnless(0, 0, 'go on'),
    ...lookUp,
    jumpIfNull(0, 'go on'),
    label('socket'),
    store(8, STACK, ALL_AT, 0),
    ...FLOW_NUMBERS.flatMap((i) => [
      load(4, 1, 0, FLOW.dialledPort),
      jumpIf(1, 0, 'new'),
      ...[...ADDRESS_FIELDS.map((n) => 4 * n), 16].flatMap((at) => [
        load(4, 1, 0, FLOW.dialled + at),
        load(4, 2, STACK, DIALLED_AT + at),
        jumpUnlessSame(1, 2, `not ${i}`),
      ]),
      jump('known'),
      label(`not ${i}`),
      ...toNext(i),
    ]),
    jump('go on'),
  ]
}

/** The backend is still in the list, or another one is chosen. */
function goWhereItWent(choice: steps.Choice): Step[] {
  const { layout, maps } = choice
  const keyWords = steps.keyWordsOf(choice)
  const first = ADDRESS_FIELDS.length - keyWords.length
  const key = -layout.live.keyLength
  const chosen = (i: number) => FLOW.chosen + 4 * (first + i)
  return [
    store(4, STACK, key, LIST),
    ...keyWords.flatMap((_, i) => [load(4, 1, 0, chosen(i)), store(4, STACK, key + 4 + 4 * i, 1)]),
    load(4, 1, 0, FLOW.chosenPort),
    store(4, STACK, key + 4 + layout.port, 1),
    loadMap(1, maps.live),
    move(2, STACK),
    add(2, key),
    call(HELPER.lookUp),
    jumpIfNull(0, 'choose'),
    load(8, 2, STACK, MINE_AT),
    ...keyWords.flatMap((word, i) => [load(4, 1, 2, chosen(i)), store(4, CONTEXT, word, 1)]),
    load(4, 1, 2, FLOW.chosenPort),
    store(4, CONTEXT, SOCKET_ADDRESS.port, 1),
    set(0, steps.GO_ON),
    exit(),
  ]
}

/** Two flows of a socket to one backend: nobody could say whose answer it is. The rules can. */
function leaveIfTaken(choice: steps.Choice): Step[] {
  const keyWords = steps.keyWordsOf(choice)
  const first = ADDRESS_FIELDS.length - keyWords.length
  return FLOW_NUMBERS.flatMap((i) => [
    load(2, 1, BACKEND, choice.layout.port),
    load(4, 2, ALL, i * FLOW.length + FLOW.chosenPort),
    jumpUnlessSame(1, 2, `free ${i}`),
    ...keyWords.flatMap((_, n) => [
      load(4, 1, BACKEND, 4 * n),
      load(4, 2, ALL, i * FLOW.length + FLOW.chosen + 4 * (first + n)),
      jumpUnlessSame(1, 2, `free ${i}`),
    ]),
    jump('by the rules'),
    label(`free ${i}`),
  ])
}

function writeFlow(choice: steps.Choice): Step[] {
  const keyWords = steps.keyWordsOf(choice)
  const first = ADDRESS_FIELDS.length - keyWords.length
  return [
    ...[0, 0, steps.MAPPED_WORD].slice(0, first).map((value, i) => storeValue(4, MINE, FLOW.chosen + 4 * i, value)),
    ...keyWords.flatMap((_, i) => [load(4, 1, BACKEND, 4 * i), store(4, MINE, FLOW.chosen + 4 * (first + i), 1)]),
    load(2, 1, BACKEND, choice.layout.port),
    store(4, MINE, FLOW.chosenPort, 1),
    load(4, 1, STACK, LIST_AT),
    store(4, MINE, FLOW.list, 1),
    ...writeDialledOf(MINE),
  ]
}

function writeDialledOf(flow: Register): Step[] {
  return [...ADDRESS_FIELDS.map((n) => 4 * n), 16].flatMap((at) => [
    load(4, 1, STACK, DIALLED_AT + at),
    store(4, flow, FLOW.dialled + at, 1),
  ])
}

/** The socket has a port by now, but an address only if it is bound to one. */
function reportCall({ bound, calls }: steps.Choice): Step[] {
  const rest = ADDRESS_FIELDS.slice(bound.length)
  return [
    load(8, 1, CONTEXT, SOCKET_ADDRESS.socket),
    ...bound.flatMap((at, i) => [load(4, 2, 1, at), store(4, STACK, CALL_AT + CALL.local + 4 * i, 2)]),
    ...rest.map((i) => storeValue(4, STACK, CALL_AT + CALL.local + 4 * i, 0)),
    load(4, 2, 1, BOUND.port),
    store(4, STACK, CALL_AT + CALL.localPort, 2),
    storeValue(4, STACK, CALL_AT + CALL.localPort + 4, 0),
    ...steps.report(calls),
  ]
}

/** An answer of a chosen backend comes from the address that was dialled. */
function receive(words: readonly number[], flows: number): Step[] {
  const first = ADDRESS_FIELDS.length - words.length
  const fields = [
    { at: SOCKET_ADDRESS.port, dialled: FLOW.dialledPort, chosen: FLOW.chosenPort },
    ...words.map((word, i) => ({
      at: word,
      dialled: FLOW.dialled + 4 * (first + i),
      chosen: FLOW.chosen + 4 * (first + i),
    })),
  ]
  return [
    ...steps.onlyFor(steps.SOCKET_TYPE.UDP, IPPROTO.UDP),
    ...steps.socketKey(),
    ...steps.lookUp(flows, COOKIE_AT),
    ...FLOW_NUMBERS.flatMap((i) => [
      ...fields.flatMap(({ at, chosen }) => [
        load(4, 1, CONTEXT, at),
        load(4, 2, 0, chosen),
        jumpUnlessSame(1, 2, `not ${i}`),
      ]),
      ...fields.flatMap(({ at, dialled }) => [load(4, 1, 0, dialled), store(4, CONTEXT, at, 1)]),
      jump('go on'),
      label(`not ${i}`),
      ...toNext(i),
    ]),
    ...steps.goOn(),
  ]
}

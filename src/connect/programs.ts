// The programs that the kernel runs when a process calls connect() or getpeername() with a socket of TCP.
//
// The first looks up the address and port that the process dials, and replaces them by a random backend. If anything is missing - an
// entry, a backend, memory - it leaves the call as it is, and the rules of the mode translate its packets. The second gives a
// process the address that it dialled. One at changes of TCP's state says which address the calls got that the rules serve for the time being (`witness.ts`). A last one deletes the entry that this needs when the process closes its socket.
// Those for UDP are in `send-programs.ts`.

import {
  exit,
  jump,
  jumpIf,
  jumpUnless,
  jumpUnlessSame,
  label,
  load,
  move,
  type Register,
  set,
  STACK,
  type Step,
  store,
  storeValue,
} from '../bpf/instructions.ts'
import { type Hook, SOCKET, SOCKET_ADDRESS, TCP_CONNECTS, TCP_STATE } from '../bpf/uapi.ts'
import * as steps from './choice-steps.ts'
import { CALL, CALLED_LENGTH, IPPROTO, type Layout, layouts, REMEMBERED } from './layout.ts'
import { planSendPrograms } from './send-programs.ts'

const { ADDRESS_FIELDS, BACKEND, CALL_AT, CONTEXT, COOKIE_AT, IP4_WORDS, IP6_WORDS, REMEMBERED_AT } = steps

export function planPrograms(context: steps.ProgramContext): Partial<Record<Hook, readonly Step[]>> {
  const { maps4, maps6, dialled } = context
  const programs = {
    ...planSendPrograms(context),
    connect4: [
      ...onlyTcp(),
      ...connect({ ...context, words: IP4_WORDS, layout: layouts[4], maps: maps4, bound: steps.BOUND4 }),
      ...steps.goOn(),
    ],
    getpeername4: getpeername(IP4_WORDS, dialled),
    release: release(context),
    stateOfTcp: reportCall(context),
  }
  if (maps6 === undefined) return programs
  return { ...programs, connect6: connect6(context, maps6), getpeername6: getpeername(IP6_WORDS, dialled) }
}

/** Sockets of IPv6 can also dial IPv4 addresses, written as ::ffff:10.0.0.1. */
function connect6(context: steps.ProgramContext, maps6: steps.FamilyMaps): Step[] {
  const prefix = [0, 0, steps.MAPPED_WORD].flatMap((value, i) => [
    load(4, 0, CONTEXT, IP6_WORDS[i]!),
    jumpUnless(0, value, 'IPv6'),
  ])
  const common = { ...context, words: IP6_WORDS, bound: steps.BOUND6 }
  return [
    ...onlyTcp(),
    ...prefix,
    ...connect({ ...common, layout: layouts[4], maps: context.maps4 }),
    set(0, steps.GO_ON),
    exit(),
    label('IPv6'),
    ...connect({ ...common, layout: layouts[6], maps: maps6 }),
    ...steps.goOn(),
  ]
}

function onlyTcp(): Step[] {
  return steps.onlyFor(steps.SOCKET_TYPE.TCP, IPPROTO.TCP)
}

function connect(choice: steps.Choice): Step[] {
  // When the socket has an address, the call is reported.
  const leave = [...steps.socketKey(), ...steps.update(choice.called, COOKIE_AT, CALL_AT), jump('go on')]
  return [
    ...steps.findList(choice),
    ...steps.choose(choice, leave),
    ...writeBoth(choice.words, choice.layout),
    ...remember(choice.dialled),
    ...steps.countChoice(choice),
    ...steps.replaceDialled(choice),
  ]
}

/** Of each call that was left to the rules, reports what address and port the socket got. */
function reportCall({ called, calls }: steps.ProgramContext): Step[] {
  const words = ADDRESS_FIELDS.map((i) => 4 * i)
  return [
    move(CONTEXT, 1),
    load(4, 0, CONTEXT, TCP_STATE.what),
    jumpUnless(0, TCP_CONNECTS, 'go on'),
    ...steps.socketKey(),
    ...steps.lookUp(called, COOKIE_AT),
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
    ...steps.report(calls),
    ...steps.remove(called, COOKIE_AT),
    ...steps.goOn(),
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
    ...steps.goOn(),
  ]
}

/** Stores the entry of the socket. If the map is full, the call goes on unchanged. */
function remember(dialled: number): Step[] {
  return [...steps.socketKey(), ...steps.update(dialled, COOKIE_AT, REMEMBERED_AT), jumpUnless(0, 0, 'go on')]
}

/** Deletes what is known of a socket when its last descriptor is closed. */
function release({ dialled, flows }: steps.ProgramContext): Step[] {
  return [
    move(CONTEXT, 1),
    load(4, 0, CONTEXT, SOCKET.protocol),
    jumpIf(0, IPPROTO.UDP, 'UDP'),
    jumpUnless(0, IPPROTO.TCP, 'go on'),
    ...steps.socketKey(),
    ...steps.remove(dialled, COOKIE_AT),
    jump('go on'),
    label('UDP'),
    ...steps.socketKey(),
    ...steps.remove(flows, COOKIE_AT),
    ...steps.goOn(),
  ]
}

/** Leaves a pointer to the entry of the socket in r0. */
function recall(dialled: number): Step[] {
  return [...steps.socketKey(), ...steps.lookUp(dialled, COOKIE_AT)]
}

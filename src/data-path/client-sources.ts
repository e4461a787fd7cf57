// Shows the client's address to backends, though this process connects to them.
//
// The connection begins at an address of this node. Before its first packet, this process creates an entry in the connection
// tracker that replaces that source by the client's address and restores it in the answers, as for translations by rules. So
// answers find their way wherever they do in the other modes, and the node needs no other setup.

import { boundCall, errnoName, lastErrno } from '../system/libc.ts'
import { NetlinkSocket } from '../netlink/socket.ts'
import { messageOf } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import type { SeenAs } from './seen-as.ts'
import { tcpAttributes } from '../conntrack/messages.ts'
import { ConntrackTemplate } from '../conntrack/template.ts'
import { IPCTNL_MSG_CT_DELETE, TCP_CONNTRACK_CLOSE, TCP_CONNTRACK_TIME_WAIT } from '../conntrack/uapi.ts'
import { NETLINK_NETFILTER, NLMSG_ERROR } from '../netlink/uapi/netlink.ts'
import { LITTLE_ENDIAN } from '../lib/endian.ts'
import { familyOf, isSameHost, setPort } from '../system/socket-address.ts'
import { type PoolProtocol, readSocketAddress, shareAddress } from './sockets.ts'
import type { SourcePorts } from './source-ports.ts'

const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17 } as const
const MSG_DONTWAIT = 0x40
/** Offsets in struct nlmsgerr: the error, and the type of the message that failed. */
const ERROR_AT = 16
const FAILED_TYPE_AT = 24
/** Offsets in a message: its type, and the attributes of a flow. */
const TYPE_AT = 4
const FLOW_AT = 20
/** Ports that are tried for one connection. */
const TRIES = 8
const PORT_IS_USED = 'port is used'
const SOCKET_IS_SPENT = 'socket is spent'
/** States of a connection that has ended. One without a state is about to begin: another thread has just created it. */
const OVER: ReadonlySet<number> = new Set([TCP_CONNTRACK_TIME_WAIT, TCP_CONNTRACK_CLOSE])

export interface Disguise {
  readonly family: Family
  readonly protocol: PoolProtocol
  /** Socket addresses. That of this node, at which the connection is to begin, has its port filled in. */
  readonly node: Uint8Array
  readonly backend: Uint8Array
  readonly client: Uint8Array
}

/**
 * Whether a backend is to see the client. A program on this node always does, as in the other modes: what stays on the
 * node is not masqueraded. A pod that comes to itself never does: it would not answer a client with its own address.
 */
export function isDisguised(seenAs: SeenAs, { node, backend, client }: Disguise): boolean {
  return (seenAs === 'client' || isSameHost(backend, node)) && !isSameHost(backend, client)
}

/** A port from which a backend sees a client, and the translation that makes it so. */
export interface ShownClient {
  readonly port: number
  readonly family: Family
  readonly protocol: PoolProtocol
  /** The node's address; its port may be another one by now. */
  readonly node: Uint8Array
  /** undefined: not known any more. */
  readonly backend: Uint8Array | undefined
}

interface Templates {
  readonly create: ConntrackTemplate
  /** In place of one that may be there. */
  readonly replace: ConntrackTemplate
  readonly look: ConntrackTemplate
  readonly remove: ConntrackTemplate
}

export class ClientSources {
  readonly #warn: (message: string) => void
  readonly #ports: SourcePorts
  readonly #bind = boundCall('bind')
  readonly #send = boundCall('send')
  readonly #recv = boundCall('recv')
  readonly #answer = new Uint8Array(1024)
  readonly #answerView = new DataView(this.#answer.buffer)
  readonly #templates: Partial<Record<PoolProtocol, Partial<Record<Family, Templates>>>> = {}
  readonly #socket: NetlinkSocket | undefined
  /** Those of UDP. Nothing but this process can end them, so they must not outlive it. */
  readonly #shown = new Set<ShownClient>()

  constructor(ports: SourcePorts, warn: (message: string) => void) {
    this.#ports = ports
    this.#warn = warn
    try {
      // Opened early: later there may be no file descriptors left.
      this.#socket = new NetlinkSocket(NETLINK_NETFILTER)
    } catch (error) {
      warn(`Cannot show clients to backends: ${messageOf(error)}`)
    }
  }

  /** All sockets are closed. */
  dispose(): void {
    for (const shown of this.#shown) this.over(shown)
    this.#socket?.close()
  }

  /**
   * Makes the backend see the client when this socket connects to it. What it returns is to be given to over() or
   * lingers() when the socket is closed; undefined when the backend will see this node. `spent`: it must not connect, for it
   * has a port by now from which the backend would see another client. Another socket can be tried.
   */
  disguise(fd: number, disguise: Disguise): ShownClient | undefined | 'spent' {
    if (this.#socket === undefined) return undefined
    shareAddress(fd)
    for (let tries = 0; tries < TRIES; tries++) {
      const taken = this.#ports.take()
      if (taken === undefined) break
      const { port, isExclusive } = taken
      setPort(disguise.node, port)
      const error = isExclusive ? this.#claim(fd, port, disguise) : this.#share(fd, disguise)
      if (error === '') return this.#note(port, disguise)
      this.#ports.giveBack(port)
      if (error === PORT_IS_USED) continue
      if (error === SOCKET_IS_SPENT) {
        // A process that was here before took its ports in a row, too.
        this.#ports.goElsewhere()
        return 'spent'
      }
      this.#warn(`Cannot show clients to backends, they see this node: the connection tracker says ${error}`)
      return undefined
    }
    this.noPortIsFree()
    return undefined
  }

  /** Backends see this node because no port could be found. */
  noPortIsFree(): void {
    this.#warn('Cannot show clients to backends, they see this node: no source port was found free')
  }

  /** The translation of a socket that another thread opened; `port` is 0 when the backend sees this node. */
  shownBy(fd: number, port: number): ShownClient | undefined {
    if (port === 0) return undefined
    const node = readSocketAddress('getsockname', fd)
    if (node === undefined) return { port, family: 4, protocol: 'TCP', node: new Uint8Array(), backend: undefined }
    return { port, family: familyOf(node), protocol: 'TCP', node, backend: readSocketAddress('getpeername', fd) }
  }

  /**
   * The socket is closed and the kernel sends nothing more for it. The translation goes with it: the next
   * socket with this port, of this process or another, is not to be taken for this client.
   */
  over(shown: ShownClient | undefined): void {
    if (shown === undefined) return
    const { port, node, backend } = shown
    if (backend !== undefined) {
      setPort(node, port)
      this.#request('remove', { ...shown, backend, client: node })
    }
    this.lingers(shown)
  }

  /**
   * The socket is closed, and the kernel still sends the end of the stream in the client's name. The connection tracker has
   * seen that end by then, and treats the next connection from this port as a new one.
   */
  lingers(shown: ShownClient | undefined): void {
    if (shown === undefined) return
    this.#shown.delete(shown)
    this.#ports.giveBack(shown.port)
  }

  #note(port: number, { family, protocol, node, backend }: Disguise): ShownClient {
    const shown = { port, family, protocol, node, backend }
    if (protocol === 'UDP') this.#shown.add(shown)
    else this.#ports.noteBackend(port, backend)
    return shown
  }

  /** Begins at a port that no other connection uses. Returns the name of the error, or ''. */
  #claim(fd: number, port: number, disguise: Disguise): string {
    if (!this.#beginAt(fd, disguise)) return PORT_IS_USED
    // An entry of an earlier connection of this process is over and can be replaced at once. With many connections to few
    // backends that is the usual case, and costs no more than a new entry.
    const isOwn = disguise.protocol === 'TCP' && this.#ports.hasServed(port, disguise.backend)
    const error = this.#request(isOwn ? 'replace' : 'create', disguise)
    if (error !== 'EEXIST') return error
    // Of an earlier connection from this port; or of one that another process still has, such as the one that is taken over from.
    if (!this.#isOver(disguise)) return SOCKET_IS_SPENT
    return this.#request('replace', disguise)
  }

  /** Whether the tracker's entry is of a connection that has ended. UDP entries do not show it. */
  #isOver(disguise: Disguise): boolean {
    const failure = this.#request('look', disguise)
    if (failure !== '') return failure === 'ENOENT'
    const { info } = tcpAttributes.read(this.#answerView, FLOW_AT, this.#answerView.getUint32(0, LITTLE_ENDIAN)) ?? {}
    const state = info?.tcp?.state
    return state !== undefined && OVER.has(state)
  }

  /** Begins at a port that serves connections to other backends already, and perhaps one to this. */
  #share(fd: number, disguise: Disguise): string {
    const error = this.#request('create', disguise)
    if (error !== '') return error === 'EEXIST' ? PORT_IS_USED : error
    if (this.#beginAt(fd, disguise)) return ''
    this.#request('remove', disguise)
    return PORT_IS_USED
  }

  #beginAt(fd: number, { node }: Disguise): boolean {
    return this.#bind(fd, node, node.length) === 0
  }

  /** Sends a message to the connection tracker, which acts before this returns. The name of the error, or ''. */
  #request(what: keyof Templates, { family, protocol, node, backend, client }: Disguise): string {
    const template = this.#templatesFor(family, protocol)[what]
    template.setFlow(node, backend, client)
    const { bytes } = template
    const { fd } = this.#socket!
    if (this.#send(fd, bytes, bytes.length, 0) === -1) return lastErrno()
    const view = this.#answerView
    for (;;) {
      // Only failures are answered, and questions.
      const length = this.#recv(fd, this.#answer, this.#answer.length, MSG_DONTWAIT)
      if (length < FAILED_TYPE_AT + 2 || view.getUint16(TYPE_AT, LITTLE_ENDIAN) !== NLMSG_ERROR) return ''
      // There was nothing to be replaced.
      if (what === 'replace' && view.getUint8(FAILED_TYPE_AT) === IPCTNL_MSG_CT_DELETE) continue
      return errnoName(-view.getInt32(ERROR_AT, LITTLE_ENDIAN))
    }
  }

  #templatesFor(family: Family, protocol: PoolProtocol): Templates {
    const byFamily = (this.#templates[protocol] ??= {})
    return (byFamily[family] ??= createTemplates(family, protocol))
  }
}

function createTemplates(family: Family, protocol: PoolProtocol): Templates {
  const options = { family, protocol: PROTOCOL_NUMBERS[protocol] }
  return {
    create: new ConntrackTemplate({ ...options, messages: ['new'] }),
    replace: new ConntrackTemplate({ ...options, messages: ['delete', 'new'] }),
    look: new ConntrackTemplate({ ...options, messages: ['get'] }),
    remove: new ConntrackTemplate({ ...options, messages: ['delete'] }),
  }
}

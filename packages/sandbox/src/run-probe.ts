// One look at a container, as a kubelet takes it: over the network from the node, or by a command in the pod.

import { request as httpRequest } from 'node:http'
import { Socket } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import { messageOf } from '../../../src/lib/errors.ts'
import { ipFamily, joinHostPort } from '../../../src/lib/ip.ts'
import type { Container, Probe } from './apiserver/objects/pod.ts'
import type { RunningCommand } from './commands/run-command.ts'
import type { ProbeResult } from './controllers/pod-runtime.ts'
import type { NetworkNamespace } from './netns/network-namespace.ts'
import { openClientSocket } from './netns/sockets.ts'

export interface ProbeTarget {
  readonly node: NetworkNamespace
  readonly podIP: string
  readonly container: Container
  run(command: readonly string[]): RunningCommand
}

const MAX_OUTPUT = 1024

/** Never rejects: what goes wrong is a bad result. */
export async function runProbe(probe: Probe, target: ProbeTarget): Promise<ProbeResult> {
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000
  try {
    if (probe.httpGet !== undefined) return await probeHttp(probe.httpGet, target, timeoutMs)
    if (probe.tcpSocket !== undefined) return await probeTcp(probe.tcpSocket, target, timeoutMs)
    if (probe.exec !== undefined) return await probeCommand(probe.exec.command ?? [], target, timeoutMs)
    return { isGood: false, message: 'the sandbox runs no gRPC probes' }
  } catch (error) {
    return { isGood: false, message: messageOf(error) }
  }
}

function probeHttp(
  { path = '/', port, host, scheme = 'HTTP', httpHeaders = [] }: NonNullable<Probe['httpGet']>,
  target: ProbeTarget,
  timeoutMs: number,
): Promise<ProbeResult> {
  const address = host ?? target.podIP
  const number = portOf(target.container, port)
  const url = `${scheme.toLowerCase()}://${joinHostPort(address, number)}${path}`
  return new Promise((resolve) => {
    const fail = (reason: string): void => resolve({ isGood: false, message: `Get ${JSON.stringify(url)}: ${reason}` })
    const socket = openSocket(target.node, address)
    socket.on('error', (error) => fail(error.message))
    const asked = httpRequest({
      path,
      headers: {
        host: joinHostPort(address, number),
        'user-agent': 'kube-probe/sandbox',
        connection: 'close',
        ...Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value])),
      },
      createConnection: () => {
        const plain = socket.connect({ host: address, port: number })
        return scheme === 'HTTPS' ? tlsConnect({ socket: plain, rejectUnauthorized: false }) : plain
      },
    })
    const cancel = after(timeoutMs, () => {
      fail(`no answer within ${timeoutMs / 1000} s`)
      asked.destroy()
      socket.destroy()
    })
    asked.on('close', cancel)
    asked.on('error', (error) => fail(error.message))
    asked.on('response', (response) => {
      const code = response.statusCode ?? 0
      response.resume()
      response.on('close', () => socket.destroy())
      resolve({ isGood: code >= 200 && code < 400, message: `HTTP probe failed with statuscode: ${code}` })
    })
    asked.end()
  })
}

function probeTcp(
  { port, host }: NonNullable<Probe['tcpSocket']>,
  target: ProbeTarget,
  timeoutMs: number,
): Promise<ProbeResult> {
  const address = host ?? target.podIP
  const number = portOf(target.container, port)
  return new Promise((resolve) => {
    const socket = openSocket(target.node, address)
    const finish = (isGood: boolean, reason: string): void => {
      cancel()
      resolve({ isGood, message: `dial tcp ${joinHostPort(address, number)}: ${reason}` })
      socket.destroy()
    }
    const cancel = after(timeoutMs, () => finish(false, `no answer within ${timeoutMs / 1000} s`))
    socket.on('error', (error) => finish(false, error.message))
    socket.connect({ host: address, port: number }, () => finish(true, ''))
  })
}

async function probeCommand(command: readonly string[], target: ProbeTarget, timeoutMs: number): Promise<ProbeResult> {
  const running = target.run(command)
  let output = ''
  for (const stream of [running.stdout, running.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (output = `${output}${text}`.slice(0, MAX_OUTPUT)))
  }
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    running.kill()
  }, timeoutMs)
  const code = await running.exited
  clearTimeout(timer)
  if (isLate) return { isGood: false, message: `command timed out after ${timeoutMs / 1000} s` }
  return { isGood: code === 0, message: output.trim() === '' ? `command ended with exit code ${code}` : output.trim() }
}

/**
 * Calls back when the time is over. A process that was busy for so long sees its timers before what has arrived meanwhile:
 * that is looked at first.
 */
function after(timeoutMs: number, late: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined
  const timer = setTimeout(() => (immediate = setImmediate(late)), timeoutMs)
  return () => {
    clearTimeout(timer)
    if (immediate !== undefined) clearImmediate(immediate)
  }
}

function openSocket(netns: NetworkNamespace, address: string): Socket {
  return new Socket({ fd: openClientSocket(netns, 'tcp', ipFamily(address) ?? 4) })
}

function portOf({ name, ports = [] }: Container, port: number | string): number {
  if (typeof port === 'number') return port
  const found = ports.find((one) => one.name === port)
  if (found === undefined) throw new Error(`container ${name} has no port of the name ${port}`)
  return found.containerPort
}

// `kubectl exec`: a command in a pod, with its streams at the other end of a connection.

import { pipeline } from 'node:stream/promises'
import { openSpdyChannels, openWebSocketChannels, type CommandChannels } from './command-channels.ts'
import { upgrade, type UpgradeRequest } from './upgrade.ts'
import { badRequest } from '../apiserver/api-error.ts'
import { messageOf } from '../../../../src/lib/errors.ts'
import type { RunningCommand } from '../commands/run-command.ts'

export interface ExecOptions {
  readonly command: readonly string[]
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly tty: boolean
}

/** What a program leaves behind that still holds its outputs does not hold up the answer for longer. */
const drainMs = 1000

/** What the query of the request asks for. Throws a 400. */
export function parseExecOptions(query: URLSearchParams): ExecOptions {
  const command = query.getAll('command')
  if (command.length === 0) throw badRequest('you must specify at least one command for the container')
  const has = (name: string): boolean => ['true', '1'].includes(query.get(name) ?? '')
  const tty = has('tty')
  // A terminal has one output.
  return { command, stdin: has('stdin'), stdout: has('stdout'), stderr: has('stderr') && !tty, tty }
}

/** Runs the command once the streams are there. */
export async function serveExec(
  request: UpgradeRequest,
  options: ExecOptions,
  run: () => RunningCommand,
): Promise<void> {
  const upgraded = await upgrade(request, {
    websocket: ['v5.channel.k8s.io', 'v4.channel.k8s.io'],
    spdy: ['v4.channel.k8s.io'],
  })
  const channels =
    upgraded.kind === 'websocket'
      ? openWebSocketChannels(upgraded.webSocket, options)
      : await openSpdyChannels(request.socket, request.head, options).catch(() => undefined)
  // A client that is gone needs no answer.
  if (channels === undefined) return
  try {
    const command = run()
    channels.finish(statusOfExit(await attach(command, channels)))
  } catch (error) {
    channels.finish({ metadata: {}, status: 'Failure', reason: 'InternalError', message: messageOf(error), code: 500 })
  }
}

/** Connects a command with a client until the command has ended; its exit code. A client that goes away ends it. */
async function attach(command: RunningCommand, channels: CommandChannels): Promise<number> {
  channels.onResize((size) => command.resize(size))
  channels.gone.addEventListener('abort', () => command.kill())
  if (channels.gone.aborted) command.kill()
  if (channels.stdin !== undefined && command.stdin !== undefined) {
    // A command that reads no more is no error.
    pipeline(channels.stdin, command.stdin).catch(() => {})
  }
  const outputs = [
    [command.stdout, channels.stdout],
    [command.stderr, channels.stderr],
  ] as const
  const sent = outputs.map(([from, to]) => {
    if (to === undefined) from?.resume()
    return from === undefined || to === undefined ? Promise.resolve() : pipeline(from, to).catch(() => {})
  })
  const code = await command.exited
  await Promise.race([Promise.all(sent), new Promise((resolve) => setTimeout(resolve, drainMs))])
  for (const stream of [command.stdin, command.stdout, command.stderr]) stream?.destroy()
  return code
}

function statusOfExit(code: number): object {
  if (code === 0) return { metadata: {}, status: 'Success' }
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${code}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  }
}

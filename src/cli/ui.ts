// `kube-proxy ui`: a page that shows what the proxy of this node does, until the command ends. It changes nothing.

import { askPath } from '../serve/control/path.ts'
import { collectInTime } from '../system/give-back.ts'
import { messageOf } from '../lib/errors.ts'
import { surviveClosedStreams } from '../lib/log-sinks.ts'
import { formatUiHelp } from './ui-help.ts'

const exitStatus = { ok: 0, failure: 1 } as const

interface UiCommand {
  readonly port: number
  readonly socket: string
}

/** Serves until it is told to end, and answers the exit status. */
export async function runUiCommand(argv: readonly string[]): Promise<number> {
  if (argv.some((word) => word === '--help' || word === '-h')) {
    process.stdout.write(formatUiHelp())
    return exitStatus.ok
  }
  const command = parse(argv)
  if (typeof command === 'string') {
    process.stderr.write(`kube-proxy: ${command}\nSee kube-proxy ui --help\n`)
    return exitStatus.failure
  }
  surviveClosedStreams()
  collectInTime()
  try {
    await serve(command)
    return exitStatus.ok
  } catch (error) {
    process.stderr.write(`kube-proxy: ${messageOf(error)}\n`)
    return exitStatus.failure
  }
}

async function serve({ port, socket }: UiCommand): Promise<void> {
  const [{ UiServer }, { NodeSource }] = await Promise.all([import('../ui/server.ts'), import('../ui/node-source.ts')])
  const source = new NodeSource({ socket: askPath(socket), program: 'kube-proxy' })
  await source.open()
  const ended = untilSignal()
  const server = new UiServer({ source })
  try {
    const url = await server.listen({ host: '127.0.0.1', port })
    process.stdout.write(`${url}\nFor a browser on this machine; nothing can be changed there. Ctrl-C ends it.\n`)
    await ended
  } finally {
    await server.close('kube-proxy ui was ended')
  }
}

/** What is wrong, in words, where the arguments make no sense. */
function parse(argv: readonly string[]): UiCommand | string {
  let port = 0
  let socket = ''
  for (let i = 0; i < argv.length; i++) {
    const [, name = '', inline] = /^--([^=]+)(?:=([\s\S]*))?$/.exec(argv[i]!) ?? []
    if (name !== 'port' && name !== 'control-socket') return `ui does not take ${JSON.stringify(argv[i])}`
    const value = inline ?? argv[++i]
    if (value === undefined) return `--${name} needs a value`
    if (name === 'control-socket') socket = value
    else port = /^\d{1,5}$/.test(value) ? Number(value) : NaN
    if (!(port >= 0 && port <= 65_535)) return `--port must be a number from 0 to 65535, not ${JSON.stringify(value)}`
  }
  return { port, socket }
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
}

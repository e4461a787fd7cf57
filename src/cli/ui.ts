// `kube-proxy ui`: a page that shows what the proxy of this node does, until the command ends. It changes nothing.

import { askPath } from '../serve/control/path.ts'
import { collectInTime } from '../system/give-back.ts'
import { surviveClosedStreams } from '../lib/log-sinks.ts'
import { NodeSource } from '../ui/node-source.ts'
import { UiServer } from '../ui/server.ts'

export interface UiOptions {
  readonly port: number | undefined
  readonly 'control-socket': string | undefined
}

export async function runUiCommand({ port = 0, 'control-socket': socket = '' }: UiOptions): Promise<number> {
  surviveClosedStreams()
  collectInTime()
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
  return 0
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
}

// `kubectl port-forward`: each connection to the client's port is two streams, one for bytes and one for what went wrong.

import { Socket } from 'node:net'
import { serveSpdy, type SpdyStream } from './spdy.ts'
import { upgrade, type UpgradeRequest } from './upgrade.ts'

const protocol = 'portforward.k8s.io'

/** Serves until the client goes. `open` gives an unconnected socket in the pod's network. */
export async function servePortForward(request: UpgradeRequest, podName: string, open: () => number): Promise<void> {
  const upgraded = await upgrade(request, { websocket: [`SPDY/3.1+${protocol}`], spdy: [protocol] })
  const errors = new Map<string, SpdyStream>()
  const onStream = (stream: SpdyStream): void => {
    const id = stream.headers.get('requestid') ?? stream.headers.get('port') ?? ''
    if (stream.headers.get('streamtype') === 'error') {
      errors.set(id, stream)
      stream.resume()
      return
    }
    const problems = errors.get(id)
    errors.delete(id)
    if (problems === undefined) stream.destroy(new Error('a stream of data without one for errors'))
    else forward(stream, problems, podName, open)
  }
  if (upgraded.kind === 'spdy') await serveSpdy(request.socket, request.head, onStream)
  else {
    // The messages as one stream of bytes: kubectl sends SPDY through the WebSocket.
    const { createWebSocketStream } = await import('ws')
    await serveSpdy(createWebSocketStream(upgraded.webSocket), Buffer.alloc(0), onStream)
  }
}

function forward(data: SpdyStream, problems: SpdyStream, podName: string, open: () => number): void {
  const port = Number(data.headers.get('port'))
  let socket: Socket
  const fail = (reason: string): void => {
    problems.end(`error forwarding port ${port} to pod ${podName}: ${reason}`)
    data.end()
    data.resume()
  }
  try {
    socket = new Socket({ fd: open(), allowHalfOpen: true })
  } catch (error) {
    fail((error as Error).message)
    return
  }
  let isConnected = false
  socket.on('error', (error) => {
    if (!isConnected) return fail(error.message)
    problems.end()
    data.destroy(error)
  })
  // The pod's server listens on all addresses; so do most.
  socket.connect({ host: '127.0.0.1', port }, () => {
    isConnected = true
    data.pipe(socket).pipe(data)
    socket.on('end', () => problems.end())
  })
  data.on('close', () => socket.destroy())
}

// What the pods' server says.

export interface Identity {
  /** What the pod has to say: its environment's MESSAGE. */
  readonly message: string
  /** The pod's host name, which is its name unless it says otherwise. */
  readonly hostname: string
  readonly namespace: string
  readonly node: string
  readonly podIPs: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Whom the server sees, and where. */
export interface Peer {
  readonly clientIP: string
  readonly clientPort: number
  /** The address and the port that the client's packets arrived at. */
  readonly serverIP: string
  readonly serverPort: number
}

/** `viola from whoami-8fpqp` */
export function greeting({ message, hostname }: Identity): string {
  return `${message} from ${hostname}\n`
}

export interface HttpAnswer {
  readonly type: 'text/plain' | 'application/json'
  readonly body: string
}

/** The answer to a request. Any path that means nothing is answered like `/`, so that every probe finds what it asks for. */
export function answerTo(path: string, identity: Identity, peer: Peer): HttpAnswer {
  switch (path.replace(/\?.*$/, '')) {
    case '/client':
      return text(`${peer.clientIP}\n`)
    case '/env':
      return text(
        Object.entries(identity.env)
          .map(([name, value]) => `${name}=${value}\n`)
          .join(''),
      )
    case '/json':
      return { type: 'application/json', body: `${JSON.stringify({ ...identity, ...peer })}\n` }
    default:
      return text(greeting(identity))
  }
}

/** The answer to a datagram: who answers, whom it sees and where, and what was sent. */
export function echoOf(payload: Uint8Array, identity: Identity, peer: Omit<Peer, 'serverIP'>): Buffer {
  const head = `${greeting(identity)}client ${peer.clientIP} port ${peer.clientPort} to port ${peer.serverPort}\n`
  return Buffer.concat([Buffer.from(head), payload])
}

function text(body: string): HttpAnswer {
  return { type: 'text/plain', body }
}

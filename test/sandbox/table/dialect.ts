// How the pods of a sandbox talk, in the words of a prober.

import type { Dialect } from '../../support/netns/probe.ts'
import type { Greeting } from '../../support/netns/echo-server.ts'
import type { PodName } from '../../support/addresses.ts'

/** What the sandbox calls those who answer: Kubernetes does not allow capital letters. */
export const podNames: Readonly<Record<PodName | 'node', string>> = {
  localA: 'local-a',
  localB: 'local-b',
  localC: 'local-c',
  remoteA: 'remote-a',
  remoteB: 'remote-b',
  node: 'node',
}

const tableNames = new Map(Object.entries(podNames).map(([name, pod]) => [pod, name]))

/** whoami over HTTP tells all in a line of JSON; its echo of a datagram begins with two lines of text. */
export const whoamiDialect: Dialect = {
  hello: { tcp: 'GET /json HTTP/1.1\r\nhost: table\r\n\r\n', udp: 'hello' },
  read: (text) => (text.startsWith('{') ? readJson(text) : readEcho(text)),
}

function readJson(text: string): Greeting {
  const answer = JSON.parse(text) as Record<'hostname' | 'serverIP' | 'clientIP', string> &
    Record<'serverPort' | 'clientPort', number>
  return {
    host: tableName(answer.hostname),
    port: answer.serverPort,
    at: answer.serverIP,
    seenAs: answer.clientIP,
    seenPort: answer.clientPort,
  }
}

function readEcho(text: string): Greeting | undefined {
  const [, pod, seenAs = '', seenPort, port] =
    /^\S+ from (\S+)\nclient (\S+) port (\d+) to port (\d+)\n/.exec(text) ?? []
  if (pod === undefined) return undefined
  return { host: tableName(pod), port: Number(port), at: '', seenAs, seenPort: Number(seenPort) }
}

function tableName(pod: string): string {
  return tableNames.get(pod) ?? pod
}

// The packets of one connection, as rules at the hooks of this node see them: to the Service, to its endpoints, and the answers.

import { type Bytes, formatIp, joinHostPort } from '../../lib/ip.ts'
import type { Way } from '../../links/find-ways.ts'
import { DSTNAT, type ForeignPacket, type Visit } from './foreign-rules.ts'

/** Clients have ports above 32768. */
const CLIENT_PORT = 40_000

export interface Client {
  readonly address: Bytes
  /** By which its packets come in; undefined: it is this node. */
  readonly link: string | undefined
}

export interface Place {
  readonly address: Bytes
  readonly port: number
}

export interface Flow {
  readonly client: Client
  /** Undefined: no one Service. */
  readonly service: Place | undefined
  /** `masqueradeMark`: the proxy has packets to it masqueraded, which they are marked for. */
  readonly endpoints: readonly (Place & { readonly way: Way; readonly masqueradeMark?: number | undefined })[]
  /** Where the proxy listens, which carries the connection on itself. */
  readonly relay: Place | undefined
  readonly mode: string
  readonly protocol: ForeignPacket['protocol']
}

/** What the hooks of this node see of a connection. */
export function packetsOfFlow(flow: Flow): ForeignPacket[] {
  const { client, service, endpoints, mode } = flow
  const others = endpoints.filter(({ address }) => address !== client.address)
  return [
    ...(service === undefined ? [] : [toService(flow, service)]),
    ...(mode === 'userspace'
      ? relayed(flow)
      : others.flatMap((endpoint) => [toEndpoint(flow, endpoint), answer(flow, endpoint)])),
  ]
}

/** Before it is translated. IPVS takes it from the hook input, and from the hook output. */
function toService(flow: Flow, service: Place): ForeignPacket {
  const { client, mode } = flow
  const upTo = mode === 'ipvs' ? {} : { upTo: DSTNAT }
  const visits: Visit[] =
    client.link === undefined
      ? [{ hook: 'output', ...upTo }]
      : [{ hook: 'ingress' }, { hook: 'prerouting', ...upTo }, ...(mode === 'ipvs' ? [{ hook: 'input' } as const] : [])]
  return packet(flow, { from: client, to: service, dialled: undefined, links: [client.link, undefined], visits })
}

function toEndpoint(flow: Flow, endpoint: Flow['endpoints'][number]): ForeignPacket {
  const { client, service, mode } = flow
  const isHere = endpoint.way.kind === 'local'
  const out: Visit[] = [{ hook: 'postrouting' }, { hook: 'egress' }]
  const above = service === undefined ? {} : { above: DSTNAT }
  const visits: Visit[] =
    client.link === undefined || mode === 'ipvs'
      ? [{ hook: 'output', ...above }, ...(isHere ? [{ hook: 'input' } as const] : out)]
      : [
          { hook: 'prerouting', ...above },
          ...(isHere ? [{ hook: 'input' } as const] : [{ hook: 'forward' } as const, ...out]),
        ]
  const { masqueradeMark } = endpoint
  return packet(flow, {
    from: client,
    to: endpoint,
    dialled: service,
    links: [client.link, linkOf(endpoint)],
    visits,
    masqueradeMark,
  })
}

function answer(flow: Flow, endpoint: Flow['endpoints'][number]): ForeignPacket {
  const { client, service } = flow
  const visits: Visit[] =
    endpoint.way.kind === 'local'
      ? [{ hook: 'output' }, { hook: 'postrouting' }]
      : client.link === undefined
        ? [{ hook: 'ingress' }, { hook: 'prerouting' }, { hook: 'input' }]
        : [
            { hook: 'ingress' },
            { hook: 'prerouting' },
            { hook: 'forward' },
            { hook: 'postrouting' },
            { hook: 'egress' },
          ]
  return packet(flow, {
    from: endpoint,
    to: client,
    dialled: service,
    links: [linkOf(endpoint), client.link],
    visits,
    isAnswer: true,
  })
}

/** The client's connection ends at the proxy, which opens one of its own. */
function relayed(flow: Flow): ForeignPacket[] {
  const { client, service, relay, endpoints } = flow
  const first: Visit =
    client.link === undefined ? { hook: 'output', above: DSTNAT } : { hook: 'prerouting', above: DSTNAT }
  const link = client.link ?? 'lo'
  const own = { ...flow, client: { ...client, link: undefined }, service: undefined }
  return [
    ...(relay === undefined
      ? []
      : [
          packet(flow, {
            from: client,
            to: relay,
            dialled: service,
            links: [link, undefined],
            visits: [first, { hook: 'input' }],
          }),
        ]),
    ...endpoints.flatMap((endpoint) => [
      { ...toEndpoint(own, endpoint), label: labelOf('this node', endpoint) },
      { ...answer(own, endpoint), label: `the answer of ${textOf(endpoint)} to this node` },
    ]),
  ]
}

interface Passing {
  readonly from: { readonly address: Bytes; readonly port?: number }
  readonly to: { readonly address: Bytes; readonly port?: number }
  readonly dialled: Place | undefined
  readonly links: readonly [input: string | undefined, output: string | undefined]
  readonly visits: readonly Visit[]
  readonly isAnswer?: true
  readonly masqueradeMark?: number | undefined
}

function packet(
  { client, protocol }: Flow,
  { from, to, dialled, links, visits, isAnswer, masqueradeMark }: Passing,
): ForeignPacket {
  const who = client.link === undefined ? 'this node' : formatIp(client.address)
  return {
    label: isAnswer === true ? `the answer of ${textOf(from)} to ${who}` : labelOf(who, to),
    protocol,
    source: from.address,
    sourcePort: from.port ?? CLIENT_PORT,
    destination: to.address,
    destinationPort: to.port ?? CLIENT_PORT,
    dialled,
    isAnswer: isAnswer === true,
    inputInterface: links[0],
    outputInterface: links[1],
    visits,
    masqueradeMark,
    isOfThisNode: client.link === undefined,
  }
}

function labelOf(who: string, to: { readonly address: Bytes; readonly port?: number }): string {
  return `a packet from ${who} to ${textOf(to)}`
}

function textOf({ address, port }: { readonly address: Bytes; readonly port?: number }): string {
  return port === undefined ? formatIp(address) : joinHostPort(formatIp(address), port)
}

function linkOf({ way }: Flow['endpoints'][number]): string | undefined {
  return way.kind === 'link' ? way.link : way.kind === 'local' ? 'lo' : undefined
}

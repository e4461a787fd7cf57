// A line for people about a connection.

import type { FlowPeer, FlowRecord } from '../flows/flow-record.ts'
import { joinHostPort } from '../lib/ip.ts'
import { formatNumber } from './top-view.ts'

export function formatFlow(flow: FlowRecord): string {
  const { timeMs, service, protocol, client, frontend, backend } = flow
  const time = new Date(timeMs).toISOString().slice(11, 23)
  const to = `${service} (${joinHostPort(frontend.ip, frontend.port)}/${protocol.toLowerCase()})`
  const behind = backend === undefined ? '' : ` -> ${formatPeer(backend)}`
  const line = `${time} ${formatPeer(client)} -> ${to}${behind}: ${outcomeOf(flow)}`
  // Whatever a name has in it, the terminal shows it and does nothing else.
  return line.replace(/[\p{Cc}\p{Cf}]/gu, '?')
}

function formatPeer({ ip, port, pod, node }: FlowPeer): string {
  return `${pod === undefined ? '' : `${pod} `}${joinHostPort(ip, port)}${node === undefined ? '' : ` on ${node}`}`
}

function outcomeOf(flow: FlowRecord): string {
  const { event, end, durationMs, sentBytes, receivedBytes } = flow
  if (event === 'begun') return 'begun'
  const after = durationMs === undefined ? '' : ` after ${formatMs(durationMs)}`
  if (event === 'unanswered') return `no answer yet${after}`
  const bytes =
    sentBytes === undefined ? '' : `, sent ${formatNumber(sentBytes)} B, received ${formatNumber(receivedBytes ?? 0)} B`
  return `${end}${after}${bytes}`
}

function formatMs(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}

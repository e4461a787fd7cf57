// The peer: the same content in the shape that kube-proxy writes, a chain and an anonymous map per service, through `nft -f`.

import { spawnSync } from 'node:child_process'
import { median } from './figures.ts'

export interface PeerFigures {
  readonly loadMs: number
  readonly changeMs: number
}

const CHANGES = 5

export function measurePeer(services: number, endpoints: number): PeerFigures {
  const lines = [
    'add table ip peer',
    'add map ip peer service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }',
  ]
  for (let i = 0; i < services; i++) {
    const ip = `172.${16 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`
    lines.push(`add chain ip peer service-${i}`, rule(i, endpoints, 0))
    lines.push(`add element ip peer service-ips { ${ip} . tcp . 80 : goto service-${i} }`)
  }
  lines.push(
    'add chain ip peer services',
    'add rule ip peer services ip daddr . meta l4proto . th dport vmap @service-ips',
  )
  const loadMs = run(lines)
  const changes = Array.from({ length: CHANGES }, (_, round) =>
    run([`flush chain ip peer service-${round}`, rule(round, endpoints, round + 1)]),
  )
  run(['delete table ip peer'])
  return { loadMs, changeMs: median(changes) }
}

function rule(service: number, endpoints: number, round: number): string {
  const elements = Array.from({ length: endpoints }, (_, slot) => {
    const n = service * endpoints + slot
    return `${slot} : ${10 + round}.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255} . 8080`
  })
  const map = `numgen random mod ${endpoints} map { ${elements.join(', ')} }`
  return `add rule ip peer service-${service} meta l4proto tcp dnat ip addr . port to ${map}`
}

function run(lines: readonly string[]): number {
  const start = performance.now()
  const { status, stderr } = spawnSync('nft', ['-f', '-'], { input: `${lines.join('\n')}\n`, encoding: 'utf8' })
  if (status !== 0) throw new Error(`Cannot measure the peer: nft says ${stderr}`)
  return performance.now() - start
}

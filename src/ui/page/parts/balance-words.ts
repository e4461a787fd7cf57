import type { ServiceInfo } from '../../protocol.ts'

/** `least-connections, random on node-2` */
export function balanceWords({ balance, otherBalances }: Pick<ServiceInfo, 'balance' | 'otherBalances'>): string {
  return [balance, ...Object.entries(otherBalances).map(([node, other]) => `${other} on ${node}`)].join(', ')
}

// What becomes of clients from outside where externalTrafficPolicy is Local and no endpoint is on this node.
//
//     service.kube-proxy-ts.io/without-local-endpoints: "use-others"
//
// By default they are dropped, so that a load balancer goes elsewhere. Others have all endpoints instead, as with policy Cluster:
// then nobody is dropped between the end of the last local endpoint and the next health check. Or the packet is left alone and
// routed on, for an address that several nodes or clusters announce. The health check node port tells all of them apart: it says
// 503 wherever no endpoint is local.

export const WITHOUT_LOCAL_ANNOTATION = 'service.kube-proxy-ts.io/without-local-endpoints'

export type WithoutLocal = 'drop' | 'use others' | 'leave alone'

/** What the annotation may say. */
export const WITHOUT_LOCAL_WORDS: Readonly<Record<string, WithoutLocal>> = {
  drop: 'drop',
  'use-others': 'use others',
  'leave-alone': 'leave alone',
}

/** For the owner of the Service. */
export function withoutLocalHasNoEffect(policy: string): string {
  const found = policy === '' ? 'absent' : JSON.stringify(policy)
  return `annotation ${WITHOUT_LOCAL_ANNOTATION} has no effect: spec.externalTrafficPolicy is ${found}, it must be "Local"`
}

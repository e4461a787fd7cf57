// For which Services a connection is retried when its backend does not answer.
//
//     service.kube-proxy-ts.io/connect-retry: "on"
//
// A Service may always decline. Its request counts only where the operator allows it: this node then probes the addresses of
// its EndpointSlices, and a tenant who writes those must not cause that alone.

export const CONNECT_RETRY_ANNOTATION = 'service.kube-proxy-ts.io/connect-retry'

/** What the operator allows: no Service, those with the annotation, or all that do not decline. */
export type RetryScope = boolean | 'annotated'

export function isRetried(asked: boolean | undefined, scope: RetryScope): boolean {
  return scope === 'annotated' ? asked === true : scope && asked !== false
}

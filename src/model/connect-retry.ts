// For which Services connections are tried again when their backend does not answer.
//
//     service.kube-proxy-ts.io/connect-retry: "on"
//
// A Service may always decline. That it asks counts only where the operator says so: this node then connects to what its
// EndpointSlices name, and whoever writes those is not to make it do that unasked.

export const CONNECT_RETRY_ANNOTATION = 'service.kube-proxy-ts.io/connect-retry'

/** What the operator allows: for no Service, for those that ask for it, or for all that do not decline. */
export type RetryScope = boolean | 'annotated'

/** `asked`: what the annotation says, if there is one. */
export function isRetried(asked: boolean | undefined, scope: RetryScope): boolean {
  return scope === 'annotated' ? asked === true : scope && asked !== false
}

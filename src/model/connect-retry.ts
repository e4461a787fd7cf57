// Whether connections of a Service are tried again when their backend does not answer, from an annotation of the Service.
//
//     service.kube-proxy-ts.io/connect-retry: "on"
//
// Without it, `--connect-retry` decides.

export const CONNECT_RETRY_ANNOTATION = 'service.kube-proxy-ts.io/connect-retry'

// Whether the traffic of a Service has metrics of its own, where `--traffic-metrics` lets anything be counted.
//
//     service.kube-proxy-ts.io/traffic-metrics: "on"
//
// Without it, the Services that first have traffic get metrics, up to a limit.

export const TRAFFIC_METRICS_ANNOTATION = 'service.kube-proxy-ts.io/traffic-metrics'

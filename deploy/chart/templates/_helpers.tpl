{{- define "kube-proxy-ts.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "kube-proxy-ts.labels" -}}
k8s-app: kube-proxy-ts
{{- end }}

{{/* Whether settings come from a file, and from which ConfigMap. */}}
{{- define "kube-proxy-ts.configMap" -}}
{{- if .Values.existingConfigMap -}}
{{ .Values.existingConfigMap }}
{{- else if .Values.configuration -}}
kube-proxy-ts
{{- end -}}
{{- end }}

{{/* Where the API server is, for a pod whose kubeconfig does not say. */}}
{{- define "kube-proxy-ts.check" -}}
{{- if and .Values.existingConfigMap .Values.configuration -}}
{{- fail "Cannot use both configuration and existingConfigMap: set one of them" -}}
{{- end -}}
{{- if not .Values.existingConfigMap -}}
{{- $_ := required "apiServer.host is required: an address of the API server that is not its cluster IP, which works because of this very program" .Values.apiServer.host -}}
{{- end -}}
{{- if not (include "kube-proxy-ts.configMap" .) -}}
{{- $_ := required "podRange is required: the range of pod addresses, as 10.244.0.0/16, or two with a comma" .Values.podRange -}}
{{- end -}}
{{- if and .Values.chooseAtConnect (not (has .Values.mode (list "nftables" "iptables"))) -}}
{{- fail (printf "Cannot use chooseAtConnect in mode %s: must be nftables or iptables" .Values.mode) -}}
{{- end -}}
{{- if and (or .Values.metrics.podMonitor .Values.metrics.prometheusRule) (not .Values.metrics.enabled) -}}
{{- fail "metrics.podMonitor and metrics.prometheusRule take metrics.enabled: without it, no port can be scraped" -}}
{{- end -}}
{{- end }}

{{/* ddiff.trigger: the number of unsettled items, from the metric of the leading coordinator. The other coordinators do
not have the metric. KEDA changes nothing while it cannot read it. */}}
{{- define "ddiff.trigger" -}}
{{- $v := .Values -}}
{{- $scaling := $v.worker.scaling -}}
{{- $metric := "ddiff_queue_lag" -}}
{{- if eq $scaling.trigger "metricsAPI" -}}
- type: metrics-api
  metricType: AverageValue
  metadata:
    # KEDA reads every coordinator behind the service. It takes the namespace from between the first two dots.
    url: http://{{ include "ddiff.fullname" . }}-coordinator.{{ .Release.Namespace }}.svc:{{ $v.metrics.port }}/metrics
    format: prometheus
    valueLocation: {{ $metric }}
    aggregateFromKubeServiceEndpoints: "true"
    aggregationType: max
    targetValue: {{ int64 $scaling.itemsPerWorker | quote }}
    activationTargetValue: "0"
{{- else -}}
- type: prometheus
  metricType: AverageValue
  metadata:
    serverAddress: {{ $scaling.prometheus.serverAddress | quote }}
    query: max({{ $metric }}{namespace="{{ .Release.Namespace }}",service="{{ include "ddiff.fullname" . }}-coordinator"})
    threshold: {{ int64 $scaling.itemsPerWorker | quote }}
    activationThreshold: "0"
    # No answer is an error, not zero items.
    ignoreNullValues: "false"
{{- end -}}
{{- end }}

{{/* ddiff.trigger: the number of unsettled items that a pool can take, from the metric of the leading coordinator. The other
coordinators do not have the metric. KEDA changes nothing while it cannot read it. Arguments: root, own (the pool). */}}
{{- define "ddiff.trigger" -}}
{{- $v := .root.Values -}}
{{- $scaling := .own.scaling -}}
{{- if eq $scaling.trigger "metricsAPI" -}}
- type: metrics-api
  metricType: AverageValue
  metadata:
    # KEDA reads every coordinator behind the service. It takes the namespace from between the first two dots.
    url: http://{{ $v.coordinator.service | default (printf "%s-coordinator.%s" (include "ddiff.fullname" .root) .root.Release.Namespace) }}.svc:{{ $v.metrics.port }}/metrics
    format: prometheus
    valueLocation: ddiff_queue_lag{pool="{{ .own.name }}"}
    aggregateFromKubeServiceEndpoints: "true"
    aggregationType: max
    targetValue: {{ int64 $scaling.itemsPerWorker | quote }}
    activationTargetValue: "0"
{{- else -}}
- type: prometheus
  metricType: AverageValue
  metadata:
    serverAddress: {{ ($scaling.prometheus).serverAddress | quote }}
    query: max(ddiff_queue_lag{ddiff_cluster="{{ include "ddiff.cluster" .root }}",pool="{{ .own.name }}"})
    threshold: {{ int64 $scaling.itemsPerWorker | quote }}
    activationThreshold: "0"
    # No answer is an error, not zero items.
    ignoreNullValues: "false"
{{- end -}}
{{- end }}

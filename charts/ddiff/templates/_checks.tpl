{{/* ddiff.check refuses values that the schema cannot compare with each other. */}}
{{- define "ddiff.check" -}}
{{- $v := .Values -}}
{{- if not $v.store.address }}
{{- fail "store.address is missing; set it to s3://BUCKET/PREFIX?endpoint=URL, or to the directory of store.claim" }}
{{- end }}
{{- if and (hasPrefix "/" $v.store.address) (not $v.store.claim) }}
{{- fail (printf "store.address %s is a directory; set store.claim to the claim to mount there" $v.store.address) }}
{{- end }}
{{- if and $v.store.claim (not (hasPrefix "/" $v.store.address)) }}
{{- fail (printf "store.claim needs a directory as store.address, not %s" $v.store.address) }}
{{- end }}
{{- if and (not $v.queue.addresses) (not $v.nats.enabled) }}
{{- fail "queue.addresses is missing; set the addresses of the NATS servers, or nats.enabled=true" }}
{{- end }}
{{- if and $v.nats.enabled (ne $v.queue.auth "password") }}
{{- fail (printf "queue.auth is %s; the NATS servers of the chart know users with passwords: set queue.auth=password" $v.queue.auth) }}
{{- end }}
{{- if ne $v.queue.auth "none" }}
{{- range $role := list "coordinator" "worker" }}
{{- if not (get $v.queue.roles $role).existingSecret }}
{{- fail (printf "queue.roles.%s.existingSecret is missing; queue.auth=%s needs it" $role $v.queue.auth) }}
{{- end }}
{{- end }}
{{- if and $v.test.enabled (not $v.queue.roles.command.existingSecret) }}
{{- fail (printf "queue.roles.command.existingSecret is missing; helm test needs it with queue.auth=%s, or set test.enabled=false" $v.queue.auth) }}
{{- end }}
{{- end }}
{{- if $v.nats.enabled }}
{{- range $role := list "coordinator" "worker" "command" }}
{{- $env := get $v.nats.container.env (printf "DDIFF_%s_PASSWORD" (upper $role)) }}
{{- $given := (get $v.queue.roles $role).existingSecret }}
{{- if and $given (ne $env.valueFrom.secretKeyRef.name $given) }}
{{- fail (printf "queue.roles.%s.existingSecret is %s, but nats.container.env names %s; set both" $role $given $env.valueFrom.secretKeyRef.name) }}
{{- end }}
{{- end }}
{{- if and (not $v.nats.config.cluster.enabled) (gt (int $v.queue.replicas) 1) }}
{{- fail (printf "queue.replicas is %d, but the chart starts one NATS server; set nats.config.cluster.enabled=true" (int $v.queue.replicas)) }}
{{- end }}
{{- if and $v.nats.config.cluster.enabled (gt (int $v.queue.replicas) (int $v.nats.config.cluster.replicas)) }}
{{- fail (printf "queue.replicas is %d, more than the %d NATS servers of the chart" (int $v.queue.replicas) (int $v.nats.config.cluster.replicas)) }}
{{- end }}
{{- end }}
{{- $least := add $v.worker.graceSeconds 5 }}
{{- if lt (int $v.worker.terminationGracePeriodSeconds) (int $least) }}
{{- fail (printf "worker.terminationGracePeriodSeconds is %d; worker.graceSeconds=%d needs at least %d" (int $v.worker.terminationGracePeriodSeconds) (int $v.worker.graceSeconds) (int $least)) }}
{{- end }}
{{- if and (eq (toString $v.worker.maxSurge) "0") (eq (toString $v.worker.maxUnavailable) "0") }}
{{- fail "worker.maxSurge and worker.maxUnavailable are both 0; an update could not replace a pod" }}
{{- end }}
{{- if eq (int $v.probes.port) (int $v.metrics.port) }}
{{- fail (printf "probes.port and metrics.port are both %d" (int $v.probes.port)) }}
{{- end }}
{{- if include "ddiff.scaled" . }}
{{- $s := $v.worker.scaling }}
{{- if not $v.metrics.enabled }}
{{- fail (printf "worker.kind=%s needs metrics.enabled=true: KEDA reads the coordinators' metric" $v.worker.kind) }}
{{- end }}
{{- if gt (int $s.min) (int $s.max) }}
{{- fail (printf "worker.scaling.min is %d, more than worker.scaling.max=%d" (int $s.min) (int $s.max)) }}
{{- end }}
{{- if and (eq $s.trigger "prometheus") (not $s.prometheus.serverAddress) }}
{{- fail "worker.scaling.prometheus.serverAddress is missing; worker.scaling.trigger=prometheus needs it" }}
{{- end }}
{{- if and (eq $v.worker.kind "ScaledObject") (eq $s.scaleIn "whenIdle") (gt (int $s.min) 0) }}
{{- fail (printf "worker.scaling.min is %d: with scaleIn=whenIdle the number falls to 0 only; set min=0 or scaleIn=gradual" (int $s.min)) }}
{{- end }}
{{- if and (eq $v.worker.kind "ScaledJob") $v.worker.podDisruptionBudget.enabled }}
{{- fail "worker.podDisruptionBudget does not apply to jobs; disable it, or set worker.kind=ScaledObject" }}
{{- end }}
{{- if and (eq $v.worker.kind "ScaledJob") (gt (int $s.min) 0) }}
{{- fail (printf "worker.scaling.min is %d: jobs end themselves; set min=0, or worker.kind=ScaledObject" (int $s.min)) }}
{{- end }}
{{- end }}
{{- if and (or $v.metrics.serviceMonitor.enabled $v.metrics.podMonitor.enabled) (not $v.metrics.enabled) }}
{{- fail "metrics.serviceMonitor and metrics.podMonitor need metrics.enabled=true" }}
{{- end }}
{{- if and $v.networkPolicy.enabled $v.networkPolicy.restrictEgress (hasPrefix "s3:" $v.store.address) (not $v.networkPolicy.egress) }}
{{- fail "networkPolicy.egress is empty, so that the pods cannot reach the store; add a rule for it, or set networkPolicy.restrictEgress=false" }}
{{- end }}
{{- $prometheus := and (include "ddiff.scaled" .) (eq $v.worker.scaling.trigger "prometheus") }}
{{- if and (or $v.metrics.serviceMonitor.enabled $v.metrics.podMonitor.enabled $prometheus) $v.networkPolicy.enabled (not $v.networkPolicy.metricsFrom) }}
{{- fail "networkPolicy.metricsFrom is empty, so that Prometheus cannot read the metrics; name its pods, or set networkPolicy.enabled=false" }}
{{- end }}
{{- end }}

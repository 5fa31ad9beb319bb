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
{{- end }}
{{- if and $v.test.enabled (not $v.api.adminToken.existingSecret) }}
{{- fail "api.adminToken.existingSecret is missing; helm test needs it, or set test.enabled=false" }}
{{- end }}
{{- $page := $v.api.adminToken.existingSecret }}
{{- if and ($v.api.ingress).enabled (or (not $v.api.host) (not $page)) }}
{{- fail "api.ingress.enabled needs api.host, the name by which browsers reach the page, and api.adminToken.existingSecret" }}
{{- end }}
{{- if and ($v.api.ingress).enabled $v.networkPolicy.enabled (not $v.networkPolicy.apiFrom) }}
{{- fail "networkPolicy.apiFrom is empty, so that the Ingress cannot reach the page; name the pods of its controller, or set networkPolicy.enabled=false" }}
{{- end }}
{{- if and $v.api.signIn.issuer (or (not $v.api.signIn.client) (not $v.api.host) (not $v.api.signIn.roles) (not $page)) }}
{{- fail "api.signIn.issuer needs api.signIn.client, api.signIn.roles, api.host and api.adminToken.existingSecret" }}
{{- end }}
{{- if and $v.notify.hosts (not $v.notify.secret.existingSecret) }}
{{- fail "notify.secret.existingSecret is missing; notify.hosts needs the key that signs messages" }}
{{- end }}
{{- if $v.nats.enabled }}
{{- range $role := list "coordinator" "worker" }}
{{- $env := get $v.nats.container.env (printf "DDIFF_%s_PASSWORD" (upper $role)) }}
{{- $known := "" }}
{{- if kindIs "map" $env }}
{{- $known = dig "valueFrom" "secretKeyRef" "name" "" $env }}
{{- end }}
{{- $given := (get $v.queue.roles $role).existingSecret }}
{{- if and $given (ne $known $given) }}
{{- fail (printf "queue.roles.%s.existingSecret is %s, but nats.container.env names %s; set both" $role $given ($known | default "no secret")) }}
{{- end }}
{{- end }}
{{- if and $v.queue.tls.enabled (not $v.queue.addresses) (not (dig "nats" "tls" "enabled" false $v.nats.config)) (not (dig "merge" "tls" "" $v.nats.config)) }}
{{- fail "queue.tls.enabled is true, but the NATS servers of the chart have no certificate; set nats.config.nats.tls" }}
{{- end }}
{{- if and (not (dig "cluster" "enabled" false $v.nats.config)) (gt (int $v.queue.replicas) 1) }}
{{- fail (printf "queue.replicas is %d, but the chart starts one NATS server; set nats.config.cluster.enabled=true" (int $v.queue.replicas)) }}
{{- end }}
{{- if and (dig "cluster" "enabled" false $v.nats.config) (gt (int $v.queue.replicas) (int $v.nats.config.cluster.replicas)) }}
{{- fail (printf "queue.replicas is %d, more than the %d NATS servers of the chart" (int $v.queue.replicas) (int $v.nats.config.cluster.replicas)) }}
{{- end }}
{{- end }}
{{- if or (eq (int $v.probes.port) (int $v.metrics.port)) (has (int $v.api.port) (list (int $v.probes.port) (int $v.metrics.port))) }}
{{- fail (printf "probes.port %d, metrics.port %d and api.port %d are not different" (int $v.probes.port) (int $v.metrics.port) (int $v.api.port)) }}
{{- end }}
{{- if $v.worker.name }}
{{- fail (printf "worker.name is %s; `worker` has what all pools share, name the pools in `workers`" $v.worker.name) }}
{{- end }}
{{- $names := list }}
{{- range $v.workers }}
{{- if not .name }}
{{- fail "a pool of `workers` has no name" }}
{{- end }}
{{- if .serviceAccount }}
{{- fail (printf "the pool %s has a serviceAccount; all pools share worker.serviceAccount" .name) }}
{{- end }}
{{- if has .name $names }}
{{- fail (printf "two pools of `workers` have the name %s" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- range include "ddiff.pools" . | fromJsonArray }}
{{- $of := printf "pool %s:" .name }}
{{- $least := add .graceSeconds 5 }}
{{- if lt (int .terminationGracePeriodSeconds) (int $least) }}
{{- fail (printf "%s terminationGracePeriodSeconds is %d; graceSeconds=%d needs at least %d" $of (int .terminationGracePeriodSeconds) (int .graceSeconds) (int $least)) }}
{{- end }}
{{- if and (eq (toString .maxSurge) "0") (eq (toString .maxUnavailable) "0") }}
{{- fail (printf "%s maxSurge and maxUnavailable are both 0; an update could not replace a pod" $of) }}
{{- end }}
{{- if ne .kind "Deployment" }}
{{- $s := .scaling }}
{{- if not $v.metrics.enabled }}
{{- fail (printf "%s kind=%s needs metrics.enabled=true: KEDA reads the coordinators' metric" $of .kind) }}
{{- end }}
{{- if gt (int $s.min) (int $s.max) }}
{{- fail (printf "%s scaling.min is %d, more than scaling.max=%d" $of (int $s.min) (int $s.max)) }}
{{- end }}
{{- if and (eq $s.trigger "prometheus") (not ($s.prometheus).serverAddress) }}
{{- fail (printf "%s scaling.prometheus.serverAddress is missing; scaling.trigger=prometheus needs it" $of) }}
{{- end }}
{{- if and (eq $s.trigger "metricsAPI") (not $v.coordinator.replicas) (not $v.coordinator.service) }}
{{- fail (printf "%s coordinator.replicas is 0; set coordinator.service to the SERVICE.NAMESPACE whose metric KEDA reads, or scaling.trigger=prometheus" $of) }}
{{- end }}
{{- if and (eq .kind "ScaledObject") (eq $s.scaleIn "whenIdle") (gt (int $s.min) 0) }}
{{- fail (printf "%s scaling.min is %d: with scaleIn=whenIdle the number falls to 0 only; set min=0 or scaleIn=gradual" $of (int $s.min)) }}
{{- end }}
{{- if and (eq .kind "ScaledJob") (.podDisruptionBudget).enabled }}
{{- fail (printf "%s podDisruptionBudget does not apply to jobs; disable it, or set kind=ScaledObject" $of) }}
{{- end }}
{{- if and (eq .kind "ScaledJob") (gt (int $s.min) 0) }}
{{- fail (printf "%s scaling.min is %d: jobs end themselves; set min=0, or kind=ScaledObject" $of (int $s.min)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $v.coordinator.replicas $v.coordinator.service }}
{{- fail (printf "coordinator.service is %s, the coordinators of another release; set coordinator.replicas=0" $v.coordinator.service) }}
{{- end }}
{{- $prometheus := include "ddiff.scaled" (dict "root" . "trigger" "prometheus") }}
{{- if and (not $v.coordinator.replicas) (not $v.metrics.cluster) (or $v.metrics.podMonitor.enabled $v.metrics.prometheusRule.enabled $prometheus) }}
{{- fail "metrics.cluster is missing; with coordinator.replicas=0 set that of the coordinators' release, NAMESPACE/FULLNAME by default" }}
{{- end }}
{{- if and (or $v.metrics.serviceMonitor.enabled $v.metrics.podMonitor.enabled) (not $v.metrics.enabled) }}
{{- fail "metrics.serviceMonitor and metrics.podMonitor need metrics.enabled=true" }}
{{- end }}
{{- if and (or $v.metrics.serviceMonitor.enabled $v.metrics.podMonitor.enabled $prometheus) $v.networkPolicy.enabled (not $v.networkPolicy.metricsFrom) }}
{{- fail "networkPolicy.metricsFrom is empty, so that Prometheus cannot read the metrics; name its pods, or set networkPolicy.enabled=false" }}
{{- end }}
{{- end }}

{{/* Parts of the pods. All take root, component, own (the values of the component or pool) and pool (its name). */}}

{{/* ddiff.addresses: the addresses of the NATS servers, with the user of the role. */}}
{{- define "ddiff.addresses" -}}
{{- $v := .root.Values -}}
{{- $addresses := $v.queue.addresses -}}
{{- if not $addresses -}}
{{- $scheme := ternary "tls" "nats" $v.queue.tls.enabled -}}
{{- $name := default (ternary .root.Release.Name (printf "%s-nats" .root.Release.Name) (contains "nats" .root.Release.Name)) $v.nats.fullnameOverride -}}
{{- $addresses = list (printf "%s://%s:4222" $scheme ($name | trunc 63 | trimSuffix "-")) -}}
{{- end -}}
{{- $user := "" -}}
{{- if eq $v.queue.auth "password" -}}
{{- $user = printf "%s:$(DDIFF_NATS_PASSWORD)@" (get $v.queue.roles .component).user -}}
{{- end -}}
{{- $all := list -}}
{{- range $addresses -}}
{{- $all = append $all (. | replace "://" (printf "://%s" $user)) -}}
{{- end -}}
{{ join "," $all }}
{{- end }}

{{/* ddiff.environment: the environment variables of the role on NATS. */}}
{{- define "ddiff.environment" -}}
{{- $v := .root.Values -}}
{{- $role := get $v.queue.roles .component -}}
{{- if eq $v.queue.auth "password" }}
- name: DDIFF_NATS_PASSWORD # the next variable expands it
  valueFrom: {secretKeyRef: {name: {{ $role.existingSecret | quote }}, key: password}}
{{- end }}
- name: DDIFF_NATS_URL
  value: {{ include "ddiff.addresses" . | quote }}
{{- if eq $v.queue.auth "creds" }}
- name: DDIFF_NATS_CREDS
  value: /etc/ddiff/nats/user.creds
{{- end }}
{{- if eq $v.queue.auth "nkey" }}
- name: DDIFF_NATS_NKEY
  value: /etc/ddiff/nats/user.nk
{{- end }}
{{- if $v.queue.tls.caSecret.name }}
- name: DDIFF_NATS_CA
  value: /etc/ddiff/nats-ca/ca.crt
{{- end }}
{{- if $role.certificateSecret }}
- name: DDIFF_NATS_CERT
  value: /etc/ddiff/nats-certificate/tls.crt
- name: DDIFF_NATS_KEY
  value: /etc/ddiff/nats-certificate/tls.key
{{- end }}
- name: TMPDIR
  value: /tmp
- name: XDG_CACHE_HOME
  value: /var/cache
{{- end }}

{{/* ddiff.process: the environment variables of coordinators and workers beyond NATS. */}}
{{- define "ddiff.process" -}}
{{- $v := .root.Values -}}
{{- $secret := get $v.store.existingSecret .component }}
{{- if $secret }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ $secret | quote }}, key: AWS_ACCESS_KEY_ID}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ $secret | quote }}, key: AWS_SECRET_ACCESS_KEY}}
- name: AWS_SESSION_TOKEN
  valueFrom: {secretKeyRef: {name: {{ $secret | quote }}, key: AWS_SESSION_TOKEN, optional: true}}
{{- end }}
{{- if $v.store.region }}
- name: AWS_REGION
  value: {{ $v.store.region | quote }}
{{- end }}
{{- if $v.store.caSecret.name }}
- name: AWS_CA_BUNDLE
  value: /etc/ddiff/store-ca/ca.crt
{{- end }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- if $v.telemetry.endpoint }}
- name: POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ $v.telemetry.endpoint | quote }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ $v.telemetry.protocol | quote }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: "k8s.namespace.name={{ .root.Release.Namespace }},k8s.pod.name=$(POD_NAME),k8s.pod.uid=$(POD_UID),k8s.node.name=$(NODE_NAME),ddiff.cluster={{ include "ddiff.cluster" .root }}
    {{- range $key, $value := $v.telemetry.resourceAttributes }},{{ $key }}={{ $value }}{{ end }}"
{{- end }}
{{- with .own.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* ddiff.containerFields: the fields of a container that the values give as they are. */}}
{{- define "ddiff.containerFields" -}}
{{- with .own.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.lifecycle }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* ddiff.arguments: the arguments that coordinators and workers share. */}}
{{- define "ddiff.arguments" -}}
{{- $v := .root.Values -}}
- --name=$(POD_NAME)
- --nats-wait={{ $v.queue.wait }}
- --store={{ $v.store.address }}
- --health-listen=:{{ $v.probes.port }}
{{- if $v.metrics.enabled }}
- --metrics-listen=:{{ $v.metrics.port }}
{{- end }}
{{- range $v.sources.allowHosts }}
- --allow-host={{ . }}
{{- end }}
{{- range $v.sources.allowNetworks }}
- --allow-network={{ . }}
{{- end }}
{{- range $v.sources.allowEndpoints }}
- --allow-endpoint={{ . }}
{{- end }}
{{- if $v.sources.allowHTTP }}
- --allow-http
{{- end }}
{{- if $v.sources.caSecret.name }}
- --source-ca=/etc/ddiff/source-ca/ca.crt
{{- end }}
{{- if $v.sources.cacheMiB }}
- --source-cache={{ int64 $v.sources.cacheMiB }}
{{- end }}
- --log-level={{ .own.logLevel }}
- --log-format={{ .own.logFormat }}
{{- end }}

{{/* ddiff.secretMounts, ddiff.secretVolumes: the files of the role on NATS. */}}
{{- define "ddiff.secretMounts" -}}
{{- $v := .root.Values -}}
- {name: tmp, mountPath: /tmp}
- {name: cache, mountPath: /var/cache/ddiff}
{{- if has $v.queue.auth (list "creds" "nkey") }}
- {name: nats, mountPath: /etc/ddiff/nats, readOnly: true}
{{- end }}
{{- if $v.queue.tls.caSecret.name }}
- {name: nats-ca, mountPath: /etc/ddiff/nats-ca, readOnly: true}
{{- end }}
{{- if (get $v.queue.roles .component).certificateSecret }}
- {name: nats-certificate, mountPath: /etc/ddiff/nats-certificate, readOnly: true}
{{- end }}
{{- end }}

{{- define "ddiff.secretVolumes" -}}
{{- $v := .root.Values -}}
{{- $role := get $v.queue.roles .component -}}
{{- $sizes := dig "volumes" (dict "tmp" "64Mi" "cache" "64Mi") (.own | default dict) -}}
- name: tmp
  emptyDir: {sizeLimit: {{ $sizes.tmp | quote }}}
- name: cache
  emptyDir: {sizeLimit: {{ $sizes.cache | quote }}}
{{- if has $v.queue.auth (list "creds" "nkey") }}
{{- $file := ternary "user.creds" "user.nk" (eq $v.queue.auth "creds") }}
- name: nats
  secret: {secretName: {{ $role.existingSecret | quote }}, defaultMode: 0440, items: [{key: {{ $file }}, path: {{ $file }}}]}
{{- end }}
{{- with $v.queue.tls.caSecret }}
{{- if .name }}
- name: nats-ca
  secret: {secretName: {{ .name | quote }}, defaultMode: 0440, items: [{key: {{ .key | quote }}, path: ca.crt}]}
{{- end }}
{{- end }}
{{- if $role.certificateSecret }}
- name: nats-certificate
  secret: {secretName: {{ $role.certificateSecret | quote }}, defaultMode: 0440, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end }}

{{/* ddiff.mounts, ddiff.volumes: all files of coordinators and workers. */}}
{{- define "ddiff.mounts" -}}
{{- $v := .root.Values -}}
{{ include "ddiff.secretMounts" . }}
{{- if $v.store.caSecret.name }}
- {name: store-ca, mountPath: /etc/ddiff/store-ca, readOnly: true}
{{- end }}
{{- if $v.sources.caSecret.name }}
- {name: source-ca, mountPath: /etc/ddiff/source-ca, readOnly: true}
{{- end }}
{{- if $v.store.claim }}
- {name: store, mountPath: {{ $v.store.address | quote }}}
{{- end }}
{{- range $i, $claim := $v.sources.claims }}
- {name: source-{{ $i }}, mountPath: {{ $claim.path | quote }}, readOnly: true}
{{- end }}
{{- if $v.test.enabled }}
# A file of its own, not a link, for the campaign of helm test.
- {name: test, mountPath: /etc/ddiff/test/image.png, subPath: image.png, readOnly: true}
{{- end }}
{{- with .own.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "ddiff.volumes" -}}
{{- $v := .root.Values -}}
{{ include "ddiff.secretVolumes" . }}
{{- with $v.store.caSecret }}
{{- if .name }}
- name: store-ca
  secret: {secretName: {{ .name | quote }}, defaultMode: 0440, items: [{key: {{ .key | quote }}, path: ca.crt}]}
{{- end }}
{{- end }}
{{- with $v.sources.caSecret }}
{{- if .name }}
- name: source-ca
  secret: {secretName: {{ .name | quote }}, defaultMode: 0440, items: [{key: {{ .key | quote }}, path: ca.crt}]}
{{- end }}
{{- end }}
{{- if $v.store.claim }}
- name: store
  persistentVolumeClaim: {claimName: {{ $v.store.claim | quote }}}
{{- end }}
{{- range $i, $claim := $v.sources.claims }}
- name: source-{{ $i }}
  persistentVolumeClaim: {claimName: {{ $claim.claim | quote }}, readOnly: true}
{{- end }}
{{- if $v.test.enabled }}
- name: test
  configMap: {name: {{ include "ddiff.fullname" .root }}-test}
{{- end }}
{{- with .own.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* ddiff.podSecurity, ddiff.containerSecurity: the Pod Security Standard `restricted`, and a read-only root. */}}
{{- define "ddiff.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "ddiff.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* ddiff.placement: where the pods of a component run, and what runs before them. */}}
{{- define "ddiff.placement" -}}
{{- $own := .own -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- else }}
{{- if eq .component "coordinator" }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "ddiff.selector" . | nindent 8 }}
{{- end }}
{{- end }}
{{- with $own.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $own.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* ddiff.probes: start-up covers opening the device, readiness the connection to NATS. Liveness is the watchdog of the
stages: it never depends on NATS, so that an outage restarts no pod. */}}
{{- define "ddiff.probes" -}}
startupProbe:
  httpGet: {path: /startupz, port: probes}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: {{ .failures }}
readinessProbe:
  httpGet: {path: /readyz, port: probes}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
livenessProbe:
  httpGet: {path: /livez, port: probes}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}

{{/* ddiff.podMetadata: labels and annotations of a component's pods. */}}
{{- define "ddiff.podMetadata" -}}
labels:
  {{- with merge (dict) (.own.podLabels | default dict) (.root.Values.commonLabels | default dict) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- include "ddiff.selector" . | nindent 2 }}
  app.kubernetes.io/part-of: ddiff
{{- with .own.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Names, labels and images. A component is coordinator, worker or test. */}}

{{- define "ddiff.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "ddiff.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "ddiff.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "ddiff.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* ddiff.pools: the pools of workers as JSON; each has the values of `worker` and its own. */}}
{{- define "ddiff.pools" -}}
{{- $_ := required "worker.scaling is missing; set its values instead of null" .Values.worker.scaling -}}
{{- $all := list -}}
{{- range .Values.workers -}}
{{- $all = append $all (mergeOverwrite (deepCopy $.Values.worker) .) -}}
{{- end -}}
{{ $all | toJson }}
{{- end }}

{{/* ddiff.workerName: the name of a pool's objects. Arguments: root, own (the pool). */}}
{{- define "ddiff.workerName" -}}
{{ include "ddiff.fullname" .root }}-worker-{{ .own.name }}
{{- end }}

{{/* ddiff.cluster: the name of the cluster in Prometheus. */}}
{{- define "ddiff.cluster" -}}
{{ .Values.metrics.cluster | default (printf "%s/%s" .Release.Namespace (include "ddiff.fullname" .)) }}
{{- end }}

{{/* ddiff.server: the address of the HTTP API. */}}
{{- define "ddiff.server" -}}
{{ ternary "https" "http" (ne .Values.api.certificateSecret "") }}://{{ .Values.coordinator.service | default (printf "%s-coordinator" (include "ddiff.fullname" .)) }}:{{ .Values.api.port }}
{{- end }}

{{/* ddiff.selector: the labels of a component's pods, or of a pool's, which never change. Arguments: root, component, pool. */}}
{{- define "ddiff.selector" -}}
app.kubernetes.io/name: {{ include "ddiff.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .pool }}
ddiff/pool: {{ . }}
{{- end }}
{{- end }}

{{/* ddiff.labels: the labels of an object. Arguments: root, component. */}}
{{- define "ddiff.labels" -}}
{{ include "ddiff.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: ddiff
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* ddiff.image: the image of a component. Arguments: root, own. */}}
{{- define "ddiff.image" -}}
{{- $image := required (printf "%s.image is missing; set its repository" .component) .own.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end }}

{{/* ddiff.account: the name of a component's service account. Arguments: root, component. */}}
{{- define "ddiff.account" -}}
{{- $account := (get .root.Values .component).serviceAccount -}}
{{- if $account.name -}}
{{ $account.name }}
{{- else if $account.create -}}
{{ include "ddiff.fullname" .root }}-{{ .component }}
{{- else -}}
default
{{- end -}}
{{- end }}

{{/* ddiff.scaled: whether KEDA sets the number of workers of a pool by a trigger; empty if not. Arguments: root, trigger. */}}
{{- define "ddiff.scaled" -}}
{{- range include "ddiff.pools" .root | fromJsonArray }}
{{- if and (ne .kind "Deployment") (eq .scaling.trigger $.trigger) }}yes{{ end -}}
{{- end -}}
{{- end }}

{{/* Names, labels and images. A component is coordinator, worker or command. */}}

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

{{/* ddiff.selector: the labels of a component's pods, which never change. Arguments: root, component. */}}
{{- define "ddiff.selector" -}}
app.kubernetes.io/name: {{ include "ddiff.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* ddiff.labels: the labels of an object. Arguments: root, component. */}}
{{- define "ddiff.labels" -}}
{{ include "ddiff.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: ddiff
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* ddiff.image: the image of a component. Arguments: root, component. */}}
{{- define "ddiff.image" -}}
{{- $image := (get .root.Values .component).image -}}
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

{{/* ddiff.scaled: whether KEDA sets the number of workers; empty if not. */}}
{{- define "ddiff.scaled" -}}
{{- if ne .Values.worker.kind "Deployment" }}yes{{ end -}}
{{- end }}

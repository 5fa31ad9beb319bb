{{/* ddiff.workerPod: the pod template of a pool's workers. Its argument is that of the parts of pods. */}}
{{- define "ddiff.workerPod" -}}
{{- $v := .root.Values -}}
{{- $worker := .own -}}
{{- $part := . -}}
metadata:
  {{- include "ddiff.podMetadata" $part | nindent 2 }}
spec:
  serviceAccountName: {{ include "ddiff.account" $part }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- if eq $worker.kind "ScaledJob" }}
  restartPolicy: OnFailure
  {{- end }}
  terminationGracePeriodSeconds: {{ $worker.terminationGracePeriodSeconds }}
  {{- with $worker.runtimeClassName }}
  runtimeClassName: {{ . | quote }}
  {{- end }}
  securityContext:
    {{- include "ddiff.podSecurity" . | nindent 4 }}
  {{- with include "ddiff.placement" $part }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: worker
      image: {{ include "ddiff.image" $part | quote }}
      imagePullPolicy: {{ $worker.image.pullPolicy }}
      args:
        {{- include "ddiff.arguments" $part | nindent 8 }}
        - --grace={{ $worker.graceSeconds }}s
        - --pool={{ $worker.name }}
        - --device={{ $worker.device }}
        - --precision={{ $worker.precision }}
        - --batch={{ $worker.batch }}
        {{- if $worker.threads }}
        - --threads={{ $worker.threads }}
        {{- end }}
        {{- if $worker.priorMemoryMiB }}
        - --prior-memory={{ int64 $worker.priorMemoryMiB }}
        {{- end }}
        {{- range $stage, $limit := $worker.stageTimeout }}
        - --stage-timeout={{ $stage }}={{ $limit }}
        {{- end }}
        {{- if eq $worker.kind "ScaledJob" }}
        - --once={{ $worker.scaling.idle }}
        {{- end }}
        {{- with $worker.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        {{- include "ddiff.environment" $part | nindent 8 }}
        {{- include "ddiff.process" $part | nindent 8 }}
      {{- with include "ddiff.containerFields" $part }}
      {{- . | nindent 6 }}
      {{- end }}
      ports:
        - {name: probes, containerPort: {{ $v.probes.port }}}
        {{- if $v.metrics.enabled }}
        - {name: metrics, containerPort: {{ $v.metrics.port }}}
        {{- end }}
      {{- include "ddiff.probes" (dict "failures" (div (add $worker.startupSeconds 4) 5)) | nindent 6 }}
      resources:
        {{- $limits := deepCopy (($worker.resources).limits | default dict) }}
        {{- if ($worker.gpu).count }}
        {{- $_ := set $limits ($worker.gpu.resource | default "nvidia.com/gpu") $worker.gpu.count }}
        {{- end }}
        {{- with ($worker.resources).requests }}
        requests:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with $limits }}
        limits:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      securityContext:
        {{- include "ddiff.containerSecurity" . | nindent 8 }}
      volumeMounts:
        {{- include "ddiff.mounts" $part | nindent 8 }}
  volumes:
    {{- include "ddiff.volumes" $part | nindent 4 }}
{{- end }}

{{- define "cellserver.sentinelSelector" -}}
app.kubernetes.io/name: cellserver-sentinel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cellserver.sentinelLabels" -}}
{{ include "cellserver.labels" . | replace "app.kubernetes.io/name: cellserver" "app.kubernetes.io/name: cellserver-sentinel" }}
{{- end }}

{{- define "cellserver.replicationSecret" -}}
{{ .Values.replication.existingSecret | default (printf "%s-replication" (include "cellserver.fullname" .)) }}
{{- end }}

{{- /* The end of the pods' names, which are known in all namespaces and keep their meaning when pods are replaced. */}}
{{- define "cellserver.domain" -}}
{{ include "cellserver.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "cellserver.sentinelDomain" -}}
{{ include "cellserver.fullname" . }}-sentinel.{{ .Release.Namespace }}.svc
{{- end }}

{{- /* What differs between the two servers: arguments are the chart's values and the number of the pod. */}}
{{- define "cellserver.pairConfig" -}}
{{- $name := include "cellserver.fullname" .root -}}
{{- $domain := include "cellserver.domain" .root -}}
peer: {{ $name }}-{{ sub 1 .ordinal }}.{{ $domain }}:6380
peer-wait: 60s
replica-announce-ip: {{ $name }}-{{ .ordinal }}.{{ $domain }}
{{- end }}

{{- /* What the scripts of the chart's files read. */}}
{{- define "cellserver.sentinelEnv" -}}
- name: SENTINELS
  value: >-
    {{- range until 3 }}
    {{ include "cellserver.fullname" $ }}-sentinel-{{ . }}.{{ include "cellserver.sentinelDomain" $ }}
    {{- end }}
- name: REQUIREPASS_FILE
  value: /run/secrets/cellserver/{{ .Values.auth.secretKey }}
- name: SENTINEL_PASSWORD_FILE
  value: /run/secrets/replication/sentinel
{{- end }}

{{- define "cellserver.pairMounts" -}}
- name: replication
  mountPath: /run/secrets/replication
  readOnly: true
- name: requirepass
  mountPath: /run/secrets/cellserver
  readOnly: true
{{- end }}

{{- /* Fails for values that a pair does not have. */}}
{{- define "cellserver.checkPair" -}}
{{- if .Values.store.url }}
{{- fail "replication.enabled: servers with store.url keep nothing that a replica could take over; choose one of the two" }}
{{- end }}
{{- if not (has (int .Values.replicas) (list 1 2)) }}
{{- fail (printf "replicas: %d, but replication.enabled is for a pair; leave replicas out" (int .Values.replicas)) }}
{{- end }}
{{- if .Values.tls.existingSecret }}
{{- fail "replication.enabled: the Sentinels, and the clients that ask them, use the port without TLS; leave tls.existingSecret out" }}
{{- end }}
{{- if .Values.persistence.existingClaim }}
{{- fail "persistence.existingClaim: each of the two servers of replication.enabled has a volume of its own; leave it out" }}
{{- end }}
{{- if or (ne .Values.service.type "ClusterIP") (ne (int .Values.service.port) 6380) }}
{{- fail "service: with replication.enabled clients ask the Sentinels which server leads, and connect to its pod at 6380; leave type and port out" }}
{{- end }}
{{- if gt (len (include "cellserver.fullname" .)) 43 }}
{{- fail "fullnameOverride: with replication.enabled the name may have 43 characters" }}
{{- end }}
{{- if semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version }}
{{- fail "replication.enabled requires Kubernetes 1.30, as a leader waits in its preStop until another leads" }}
{{- end }}
{{- range list "peer" "replica-of" "repl-user" "repl-password-file" "repl-tls" "repl-tls-ca" "repl-tls-cert" "repl-tls-key"
  "replica-announce-ip" "replica-announce-port" "max-replica-lag" "aclfile" }}
{{- if hasKey $.Values.config . }}
{{- fail (printf "config.%s: replication.enabled sets it; see replication" .) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The servers and the Sentinels, as a NetworkPolicy's peers. */}}
{{- define "cellserver.pairPods" -}}
- podSelector:
    matchLabels:
      {{- include "cellserver.selector" . | nindent 6 }}
- podSelector:
    matchLabels:
      {{- include "cellserver.sentinelSelector" . | nindent 6 }}
{{- end }}

{{- define "cellserver.pairEgress" -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "cellserver.selector" . | nindent 10 }}
  ports:
    - port: redis
- to:
    - podSelector:
        matchLabels:
          {{- include "cellserver.sentinelSelector" . | nindent 10 }}
  ports:
    - port: sentinel
{{- end }}

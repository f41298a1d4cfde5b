{{- /* The name of all objects, and of the Service that clients connect to, which has no dots. */}}
{{- define "cellserver.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | replace "." "-" | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | replace "." "-" | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- /* The name is the job of the alert rules, so it is the same in all releases. */}}
{{- define "cellserver.selector" -}}
app.kubernetes.io/name: cellserver
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cellserver.labels" -}}
{{ include "cellserver.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "cellserver.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "cellserver.secret" -}}
{{ .Values.auth.existingSecret | default (include "cellserver.fullname" .) }}
{{- end }}

{{- define "cellserver.claim" -}}
{{ .Values.persistence.existingClaim | default (include "cellserver.fullname" .) }}
{{- end }}

{{- /* Not empty if there is a volume, which a server with a store does not need. */}}
{{- define "cellserver.keeps" -}}
{{- if and .Values.persistence.enabled (not .Values.store.url) }}true{{ end }}
{{- end }}

{{- /* Fails for values that would not limit or would show a password. */}}
{{- define "cellserver.check" -}}
{{- if .Values.replication.enabled }}
{{- include "cellserver.checkPair" . }}
{{- else if and (gt (int .Values.replicas) 1) (not .Values.store.url) }}
{{- fail "replicas: more than one requires store.url, as each of several servers with limits in its own memory would allow clients a full burst" }}
{{- end }}
{{- if regexMatch "://[^/]*:[^/@]*@" .Values.store.url }}
{{- fail "store.url: it has a password, which everyone who may read ConfigMaps would see; put it into a Secret and name that in store.existingSecret" }}
{{- end }}
{{- if and .Values.store.existingSecret (not .Values.store.url) }}
{{- fail "store.existingSecret is the password of a store; set store.url, too" }}
{{- end }}
{{- if and .Values.store.caSecret (not (hasPrefix "rediss" .Values.store.url)) }}
{{- fail "store.caSecret is for a store with TLS; set store.url, such as rediss://redis.example:6379" }}
{{- end }}
{{- if and (or .Values.tls.only .Values.tls.clientCA) (not .Values.tls.existingSecret) }}
{{- fail "tls.only and tls.clientCA require tls.existingSecret, a Secret of the type kubernetes.io/tls" }}
{{- end }}
{{- with .Values.tls }}
{{- $taken := ternary (list 9380) (list 6380 9380 (int $.Values.service.port)) .only }}
{{- if and .existingSecret (has (int .port) $taken) }}
{{- fail (printf "tls.port: %d is the port without TLS, or the metrics'" (int .port)) }}
{{- end }}
{{- end }}
{{- $instead := dict
  "requirepass" "auth.existingSecret" "requirepass-file" "auth.existingSecret"
  "store" "store.url" "store-password-file" "store.existingSecret" "store-tls-ca" "store.caSecret"
  "data-dir" "persistence" "limits-file" "limits"
  "addr" "service.port and tls.only" "metrics-addr" "metrics"
  "tls-addr" "tls.port" "tls-cert" "tls.existingSecret" "tls-key" "tls.existingSecret" "tls-client-ca" "tls.clientCA"
  "metrics-allowed-hosts" "metrics.allowedHosts" "metrics-token-file" "metrics.existingSecret"
  "metrics-tls-cert" "a proxy, as the probes do not speak TLS" "metrics-tls-key" "a proxy, as the probes do not speak TLS" }}
{{- range $name, $value := .Values.config }}
{{- with get $instead $name }}
{{- fail (printf "config.%s: the chart sets it; use %s" $name .) }}
{{- end }}
{{- end }}
{{- include "cellserver.checkDoors" . }}
{{- $ports := list 6380 9380 (int .Values.service.port) (int .Values.tls.port) }}
{{- range $name, $port := include "cellserver.doors" . | fromYaml }}
{{- if or (lt (int $port) 1) (has (int $port) $ports) }}
{{- fail (printf "the address for %s has a port that is taken, or none: %v; set another in doors or config" $name $port) }}
{{- end }}
{{- $ports = append $ports (int $port) }}
{{- end }}
{{- end }}

{{- /* Fails for doors that would not open, and limits that nobody would ask about. */}}
{{- define "cellserver.checkDoors" -}}
{{- range $flag := keys (include "cellserver.doorConfig" . | fromYaml) | sortAlpha }}
{{- if hasKey $.Values.config $flag }}
{{- fail (printf "config.%s: doors or xds sets it; set it only once" $flag) }}
{{- end }}
{{- end }}
{{- if and (or .Values.doors.https .Values.doors.grpcs) (not .Values.tls.existingSecret) }}
{{- fail "doors.https and doors.grpcs require tls.existingSecret, a Secret of the type kubernetes.io/tls" }}
{{- end }}
{{- $doors := include "cellserver.doors" . | fromYaml }}
{{- if and .Values.xds.addr (not (or (hasKey $doors "grpc") (hasKey $doors "grpcs"))) }}
{{- fail "xds.addr gives limits for Envoy; set the port that Envoy asks, such as doors.grpc: 6382" }}
{{- end }}
{{- if and .Values.doors.existingSecret (not $doors) }}
{{- fail "doors.existingSecret has tokens of HTTP and gRPC; set one of their ports, such as doors.http: 6381" }}
{{- end }}
{{- if and (or .Values.xds.nodeId .Values.xds.existingSecret) (not .Values.xds.addr) }}
{{- fail "xds.nodeId and xds.existingSecret require xds.addr" }}
{{- end }}
{{- end }}

{{- /* Settings of the config file that .Values.doors and .Values.xds make. */}}
{{- define "cellserver.doorConfig" -}}
{{- range $name, $flag := include "cellserver.doorFlags" . | fromYaml }}
{{- with get $.Values.doors $name }}
{{ $flag }}: ":{{ int . }}"
{{- end }}
{{- end }}
{{- with .Values.doors }}
{{- if .existingSecret }}
http-tokens-file: /run/secrets/tokens/{{ .secretKey }}
{{- end }}
{{- end }}
{{- with .Values.xds }}
{{- if .addr }}
envoy-xds: {{ .addr }}
{{- end }}
{{- if .nodeId }}
envoy-xds-node-id: {{ .nodeId | quote }}
{{- end }}
{{- if .existingSecret }}
envoy-xds-tls: true
envoy-xds-tls-ca: /run/secrets/xds/ca.crt
envoy-xds-tls-cert: /run/secrets/xds/tls.crt
envoy-xds-tls-key: /run/secrets/xds/tls.key
{{- end }}
{{- end }}
{{- end }}

{{- /* The flags of addresses by the name of the door. */}}
{{- define "cellserver.doorFlags" -}}
http: http-addr
https: http-tls-addr
grpc: grpc-addr
grpcs: grpc-tls-addr
{{- end }}

{{- /* The config file: settings of the chart, and .Values.config. */}}
{{- define "cellserver.config" -}}
{{- $c := dict
  "addr" (ternary "" ":6380" .Values.tls.only)
  "metrics-addr" ":9380"
  "metrics-allowed-hosts" .Values.metrics.allowedHosts
  "requirepass-file" (printf "/run/secrets/cellserver/%s" .Values.auth.secretKey)
  "log-format" "json" }}
{{- if include "cellserver.keeps" . }}
{{- $_ := set $c "data-dir" "/var/lib/cellserver" }}
{{- end }}
{{- if .Values.limits }}
{{- $_ := set $c "limits-file" "/etc/cellserver-limits/limits.yaml" }}
{{- end }}
{{- with .Values.store }}
{{- if .url }}{{ $_ := set $c "store" .url }}{{ end }}
{{- if and .url .existingSecret }}{{ $_ := set $c "store-password-file" (printf "/run/secrets/store/%s" .secretKey) }}{{ end }}
{{- if and .url .caSecret }}{{ $_ := set $c "store-tls-ca" "/run/secrets/store-ca/ca.crt" }}{{ end }}
{{- end }}
{{- with .Values.tls }}
{{- if .existingSecret }}
{{- $_ := set $c "tls-addr" (printf ":%d" (int .port)) }}
{{- $_ := set $c "tls-cert" "/run/secrets/tls/tls.crt" }}
{{- $_ := set $c "tls-key" "/run/secrets/tls/tls.key" }}
{{- if .clientCA }}{{ $_ := set $c "tls-client-ca" "/run/secrets/tls/ca.crt" }}{{ end }}
{{- end }}
{{- end }}
{{- if .Values.replication.enabled }}
{{- $_ := set $c "aclfile" "/run/secrets/replication/users.acl" }}
{{- $_ := set $c "repl-user" "replica" }}
{{- $_ := set $c "repl-password-file" "/run/secrets/replication/replica" }}
{{- $_ := set $c "max-replica-lag" .Values.replication.maxLag }}
{{- end }}
{{- with .Values.metrics }}
{{- if .existingSecret }}{{ $_ := set $c "metrics-token-file" (printf "/run/secrets/metrics/%s" .secretKey) }}{{ end }}
{{- end }}
{{- toYaml (mergeOverwrite $c (include "cellserver.doorConfig" . | fromYaml) (deepCopy .Values.config)) }}
{{- end }}

{{- /* The ports for HTTP and gRPC by name, of addresses that other pods can reach. */}}
{{- define "cellserver.doors" -}}
{{- $own := include "cellserver.doorConfig" . | fromYaml }}
{{- range $name, $flag := include "cellserver.doorFlags" . | fromYaml }}
{{- $address := get $own $flag | default (get $.Values.config $flag) | toString }}
{{- if and $address (not (regexMatch `^(127\.|localhost:|\[::1\])` $address)) }}
{{ $name }}: {{ regexFind "[0-9]*$" $address | default "0" | int }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Names are asked for when a connection is opened. */}}
{{- define "cellserver.nameEgress" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- end }}

{{- /* The mounted secrets by the name of their volume. */}}
{{- define "cellserver.secrets" -}}
requirepass: {path: cellserver, secret: {{ include "cellserver.secret" . }}}
{{- if .Values.replication.enabled }}
replication: {path: replication, secret: {{ include "cellserver.replicationSecret" . }}}
{{- end }}
{{- if .Values.store.url }}
{{- with .Values.store.existingSecret }}
store: {path: store, secret: {{ . }}}
{{- end }}
{{- with .Values.store.caSecret }}
store-ca: {path: store-ca, secret: {{ . }}}
{{- end }}
{{- end }}
{{- with .Values.tls.existingSecret }}
tls: {path: tls, secret: {{ . }}}
{{- end }}
{{- with .Values.metrics.existingSecret }}
metrics: {path: metrics, secret: {{ . }}}
{{- end }}
{{- with .Values.doors.existingSecret }}
tokens: {path: tokens, secret: {{ . }}}
{{- end }}
{{- with .Values.xds.existingSecret }}
xds: {path: xds, secret: {{ . }}}
{{- end }}
{{- end }}

{{- define "cellserver.secretMounts" -}}
{{- range $name, $s := include "cellserver.secrets" . | fromYaml }}
- name: {{ $name }}
  mountPath: /run/secrets/{{ $s.path }}
  readOnly: true
{{- end }}
{{- end }}

{{- define "cellserver.secretVolumes" -}}
{{- range $name, $s := include "cellserver.secrets" . | fromYaml }}
- name: {{ $name }}
  secret:
    secretName: {{ $s.secret }}
    defaultMode: 0440
{{- end }}
{{- end }}

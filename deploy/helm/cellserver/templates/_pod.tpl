{{- /* The pod of a server, the same in a Deployment and in a StatefulSet. */}}
{{- define "cellserver.pod" -}}
metadata:
  labels:
    {{- include "cellserver.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "cellserver.config" . | sha256sum }} # a pod reads its config file when it starts
    {{- if .Values.replication.enabled }}
    kubectl.kubernetes.io/default-container: cellserver
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.affinity }}
  affinity:
    {{- toYaml .Values.affinity | nindent 4 }}
  {{- else if .Values.replication.enabled }}
  affinity:
    podAntiAffinity: # a lost machine takes one of them along
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "cellserver.selector" . | nindent 14 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if or .Values.store.url .Values.replication.enabled }}
  topologySpreadConstraints:
    {{- range ternary (list "topology.kubernetes.io/zone") (list "kubernetes.io/hostname" "topology.kubernetes.io/zone") .Values.replication.enabled }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "cellserver.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  containers:
    - name: cellserver
      image: {{ include "cellserver.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      {{- with .Values.extraArgs }}
      args:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      env:
        # A variable, as it overrides the config file, and the image sets one.
        - name: CELLSERVER_ADDR
          value: {{ ternary "" ":6380" .Values.tls.only | quote }}
        {{- if .Values.replication.enabled }}
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        - name: CELLSERVER_CONFIG
          value: /etc/cellserver/{{ ternary "$(POD_NAME)" "cellserver" .Values.replication.enabled }}.yaml
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        {{- if not .Values.tls.only }}
        - name: redis
          containerPort: 6380
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - name: redis-tls
          containerPort: {{ .Values.tls.port }}
        {{- end }}
        {{- range $name, $port := include "cellserver.doors" . | fromYaml }}
        - name: {{ $name }}
          containerPort: {{ $port }}
        {{- end }}
        - name: metrics
          containerPort: 9380
      {{- if .Values.replication.enabled }}
      lifecycle:
        preStop: # a leader hands over meanwhile: see the container handover
          sleep:
            seconds: 10
      {{- end }}
      startupProbe: # a server that loads its data directory is alive, for as long as that takes, but not ready
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 1
        failureThreshold: 30
      livenessProbe: # fails after 15 s without a response, so that a hang ends after about 45 s
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe: # a degraded server is ready: "Health and readiness" in docs/OPERATIONS.md
        httpGet:
          path: /readyz
          port: metrics
        periodSeconds: 2
        timeoutSeconds: 2 # the server answers within one
        failureThreshold: 2
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/cellserver
          readOnly: true
        {{- if .Values.limits }}
        - name: limits
          mountPath: /etc/cellserver-limits
          readOnly: true
        {{- end }}
        {{- include "cellserver.secretMounts" . | nindent 8 }}
        {{- if include "cellserver.keeps" . }}
        - name: data
          mountPath: /var/lib/cellserver
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- if .Values.replication.enabled }}
    - name: handover # asks the Sentinels for a failover when the pod of the leader ends; the server's image has no shell
      image: {{ .Values.replication.sentinel.image }}
      command: [sh, /etc/cellserver/handover.sh]
      env:
        - name: SERVER
          value: localhost
        {{- include "cellserver.sentinelEnv" . | nindent 8 }}
      resources:
        requests:
          cpu: 10m
          memory: 32Mi
        limits:
          memory: 32Mi
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/cellserver
          readOnly: true
        {{- include "cellserver.pairMounts" . | nindent 8 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "cellserver.fullname" . }}
    {{- if .Values.limits }}
    - name: limits
      configMap:
        name: {{ include "cellserver.fullname" . }}-limits
    {{- end }}
    {{- include "cellserver.secretVolumes" . | nindent 4 }}
    {{- if and (include "cellserver.keeps" .) (not .Values.replication.enabled) }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ include "cellserver.claim" . }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

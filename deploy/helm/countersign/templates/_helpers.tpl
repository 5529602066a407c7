{{- define "countersign.name" -}}
{{- $name := .Chart.Name }}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "countersign.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "countersign.labels" -}}
{{ include "countersign.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "countersign.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* Refuses values that would start a bot that cannot work. */ -}}
{{- define "countersign.check" -}}
{{- /* While a deployment changes, there is one process more. */ -}}
{{- $processes := ternary (add .Values.replicas 1) 1 (eq .Values.store.kind "redis") }}
{{- $connections := mul $processes .Values.slack.connections }}
{{- if and (eq .Values.store.kind "sqlite") (ne (int .Values.replicas) 1) }}
{{- fail "store.kind is \"sqlite\", which one process uses alone: set replicas to 1, or store.kind to \"redis\"" }}
{{- end }}
{{- if and (eq .Values.slack.mode "socket") (gt (int $connections) 10) }}
{{- fail (printf "%d processes, one of them while the others are replaced, have %d connections; Slack allows an app 10" $processes $connections) }}
{{- end }}
{{- if and .Values.ingress.enabled (ne .Values.slack.mode "http") }}
{{- fail "ingress.enabled needs slack.mode \"http\"; with \"socket\" nothing comes in" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.enabled needs ingress.host" }}
{{- end }}
{{- with .Values.stop }}
{{- if lt (int .graceSeconds) (int (add .pauseSeconds .drainSeconds 5)) }}
{{- fail "stop.graceSeconds is too short: it has to be 5 s more than pauseSeconds and drainSeconds together" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The pod, which is the same for both kinds of store. */ -}}
{{- define "countersign.pod" -}}
metadata:
  labels:
    {{- include "countersign.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A change of the settings starts new pods.
    checksum/config: {{ .Values.config | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "countersign.name" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.stop.graceSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    # Only a new volume is given to the group. The store's file stays readable by its owner alone.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: countersign
      image: {{ include "countersign.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        {{- if .Values.config }}
        - --config=/etc/countersign/countersign.toml
        {{- end }}
      workingDir: /var/lib/countersign
      envFrom:
        - secretRef:
            name: {{ .Values.secrets.name }}
      env:
        - name: COUNTERSIGN__SERVER__ADDRESS
          value: "0.0.0.0"
        - name: COUNTERSIGN__SERVER__PORT
          value: "3000"
        - name: COUNTERSIGN__SERVER__LOG_FORMAT
          value: json
        - name: COUNTERSIGN__SLACK__MODE
          value: {{ .Values.slack.mode }}
        {{- if eq .Values.slack.mode "socket" }}
        - name: COUNTERSIGN__SLACK__CONNECTIONS
          value: {{ .Values.slack.connections | quote }}
        {{- end }}
        - name: COUNTERSIGN__STORE__KIND
          value: {{ .Values.store.kind }}
        - name: COUNTERSIGN__STORE__PATH
          value: /var/lib/countersign/countersign.sqlite
        - name: COUNTERSIGN__WORKERS__DRAIN
          value: {{ printf "%ds" (int .Values.stop.drainSeconds) }}
        {{- if eq .Values.store.kind "redis" }}
        # Every process needs the same keys; a pod that made its own could not start beside the others.
        - name: COUNTERSIGN_DIGEST_KEYS
          valueFrom:
            secretKeyRef:
              name: {{ .Values.secrets.name }}
              key: COUNTERSIGN_DIGEST_KEYS
        - name: REDIS_URL
          valueFrom:
            secretKeyRef:
              name: {{ .Values.secrets.name }}
              key: REDIS_URL
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: 3000
      # Before anything is answered, the store is opened and Slack is asked who the bot is.
      startupProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      # The store is given 3 s for the write by which it is checked.
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      lifecycle:
        preStop:
          sleep:
            seconds: {{ .Values.stop.pauseSeconds }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: data
          mountPath: /var/lib/countersign
        - name: tmp
          mountPath: /tmp
        {{- if .Values.config }}
        - name: config
          mountPath: /etc/countersign
          readOnly: true
        {{- end }}
        {{- with .Values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- if eq .Values.store.kind "redis" }}
    - name: data
      emptyDir:
        sizeLimit: 256Mi
    {{- end }}
    - name: tmp
      emptyDir:
        sizeLimit: 256Mi
    {{- if .Values.config }}
    - name: config
      configMap:
        name: {{ include "countersign.name" . }}
    {{- end }}
    {{- with .Values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if gt (int .Values.replicas) 1 }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "countersign.selector" $ | nindent 10 }}
      matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

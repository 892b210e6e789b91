{{- define "atelier.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "atelier.labels" -}}
app.kubernetes.io/name: atelier
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "atelier.selector" -}}
app.kubernetes.io/name: atelier
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "atelier.secret" -}}
{{- if .Values.secrets.existing -}}
{{- .Values.secrets.existing -}}
{{- else -}}
{{- include "atelier.name" . -}}
{{- end -}}
{{- end -}}

{{- /*
The deployment, the disruption budget and the autoscaler of nodes of one kind:
"role" is what they do, "component" their name, "pools" the pools that they
serve, and "pool" the pool whose queue they follow.
*/ -}}
{{- define "atelier.nodes" -}}
{{- $values := .values -}}
{{- $name := printf "%s-%s" (include "atelier.name" .root) .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "atelier.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not $values.autoscaling.enabled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  selector:
    matchLabels:
      {{- include "atelier.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "atelier.selector" . | nindent 8 }}
      annotations:
        checksum/settings: {{ toYaml .root.Values.settings | sha256sum }}
        checksum/secrets: {{ toYaml .root.Values.secrets.values | sha256sum }}
        checksum/backends: {{ toYaml .root.Values.backends | sha256sum }}
        prometheus.io/scrape: "true"
        prometheus.io/port: "9464"
    spec:
      serviceAccountName: {{ include "atelier.name" .root }}
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: atelier
          image: {{ printf "%s:%s" .root.Values.image.repository (required "image.tag is required: the version of the release" (coalesce .root.Values.image.tag .root.Chart.AppVersion)) | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: ["serve", "--roles", {{ .role | quote }}{{ with .pools }}, "--pools", {{ join "," . | quote }}{{ end }}]
          envFrom:
            - configMapRef:
                name: {{ include "atelier.name" .root }}
            - secretRef:
                name: {{ include "atelier.secret" .root }}
          ports:
            - name: http
              containerPort: 8080
            - name: metrics
              containerPort: 9464
          startupProbe:
            httpGet:
              path: /healthz
              port: http
            periodSeconds: 2
            failureThreshold: 150
          livenessProbe:
            httpGet:
              path: /healthz
              port: http
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet:
              path: /readyz
              port: http
            periodSeconds: 2
            timeoutSeconds: 5
            failureThreshold: 2
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: ["ALL"]
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          volumeMounts:
            - name: data
              mountPath: /var/lib/atelier
            - name: tmp
              mountPath: /tmp
            {{- if .root.Values.backends }}
            - name: backends
              mountPath: /etc/atelier
              readOnly: true
            {{- end }}
      volumes:
        - name: data
          emptyDir: {}
        - name: tmp
          emptyDir: {}
        {{- if .root.Values.backends }}
        - name: backends
          configMap:
            name: {{ include "atelier.name" .root }}-backends
        {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels:
    {{- include "atelier.labels" .root | nindent 4 }}
spec:
  minAvailable: {{ $values.disruption.minAvailable }}
  selector:
    matchLabels:
      {{- include "atelier.selector" . | nindent 6 }}
{{- if and $values.autoscaling.enabled $values.autoscaling.runs }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ $name }}
  labels:
    {{- include "atelier.labels" .root | nindent 4 }}
spec:
  scaleTargetRef:
    name: {{ $name }}
  minReplicaCount: {{ $values.autoscaling.min }}
  maxReplicaCount: {{ $values.autoscaling.max }}
  triggers:
    {{- $root := .root }}
    {{- $pool := required "autoscaling.runs is for workers of one pool: see pools" .pool }}
    {{- range $state := list "waiting" "running" }}
    - type: metrics-api
      metadata:
        url: http://{{ include "atelier.name" $root }}-metrics.{{ $root.Release.Namespace }}:9464/pools
        format: json
        valueLocation: pools.#(name=={{ $pool | quote }}).{{ $state }}
        targetValue: {{ $values.autoscaling.runs | quote }}
    {{- end }}
{{- else if $values.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  labels:
    {{- include "atelier.labels" .root | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ $name }}
  minReplicas: {{ $values.autoscaling.min }}
  maxReplicas: {{ $values.autoscaling.max }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ $values.autoscaling.cpu }}
{{- end }}
{{- end -}}

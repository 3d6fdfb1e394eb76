{{/* What everything is called. */}}
{{- define "picket.name" -}}
{{- if contains "picket" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-picket" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "picket.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* By which a part's pods are found: list of the context and the part. */}}
{{- define "picket.selector" -}}
app.kubernetes.io/name: picket
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "picket.labels" -}}
{{ include "picket.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{/* Nobody of the machine's, who owns what it writes. A key that it made stays its own: the group of files is set once. */}}
{{- define "picket.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "picket.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Where a part's pods are run, and in which network: list of the context and the part's values. */}}
{{- define "picket.placement" -}}
{{- $values := index . 1 -}}
{{- if $values.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- with (index . 0).Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- if or $values.nodeSelector (eq $values.runOn "control-plane") }}
nodeSelector:
  {{- if eq $values.runOn "control-plane" }}
  node-role.kubernetes.io/control-plane: ""
  {{- end }}
  {{- with $values.nodeSelector }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{ include "picket.tolerations" $values }}
{{- end }}

{{/* A part's values. */}}
{{- define "picket.tolerations" -}}
tolerations:
  - key: node-role.kubernetes.io/control-plane
    operator: Exists
    effect: NoSchedule
  {{- with .tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* A volume of a pod of its own, or one that goes with it: list of the storage and the name. */}}
{{- define "picket.claims" -}}
{{- $storage := index . 0 -}}
{{- if eq $storage.kind "claim" }}
volumeClaimTemplates:
  - metadata:
      name: {{ index . 1 }}
    spec:
      accessModes: [ReadWriteOnce]
      {{- with $storage.storageClassName }}
      storageClassName: {{ . }}
      {{- end }}
      resources:
        requests:
          storage: {{ $storage.size }}
{{- end }}
{{- end }}

{{- define "picket.settingsConfigMap" -}}
{{ .Values.settings.existingConfigMap | default (printf "%s-settings" (include "picket.name" .)) }}
{{- end }}

{{/* The gateways' settings, certificates and secrets, in the order in which they count. */}}
{{- define "picket.settingsVolumes" -}}
- name: settings
  projected:
    sources:
      - configMap:
          name: {{ include "picket.settingsConfigMap" . }}
          items: [{key: picket.toml, path: picket.toml}]
      - configMap:
          name: {{ include "picket.name" . }}-chart
          items: [{key: chart.toml, path: conf.d/50-chart.toml}]
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .Values.gateways.tls.secretName }}
          items:
            - {key: tls.crt, path: tls/tls.crt}
            - {key: tls.key, path: tls/tls.key}
            - {key: ca.crt, path: tls/ca.crt}
      - secret:
          name: {{ .Values.etcd.tls.secretName }}
          items:
            - {key: tls.crt, path: etcd/tls.crt}
            - {key: tls.key, path: etcd/tls.key}
            - {key: ca.crt, path: etcd/ca.crt}
{{- range .Values.settings.secrets }}
- name: secret-{{ . | sha256sum | trunc 12 }}
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "picket.settingsMounts" -}}
- {name: settings, mountPath: /etc/picket, readOnly: true}
- {name: secrets, mountPath: /run/certificates, readOnly: true}
{{- range .Values.settings.secrets }}
- {name: secret-{{ . | sha256sum | trunc 12 }}, mountPath: /run/secrets/{{ . }}, readOnly: true}
{{- end }}
{{- end }}

{{/* What the schema cannot see. */}}
{{- define "picket.check" -}}
{{- if and .Values.controller.enabled (not .Values.controller.tls.secretName) }}
{{- fail "\n\ncontroller.tls.secretName: name a Secret with tls.crt, tls.key and ca.crt: gateways know who asks by a certificate, whose name has the role controller in their settings." }}
{{- end }}
{{- if and .Values.controller.enabled .Values.controller.remediation (not .Values.controller.remediationNamespaces) }}
{{- fail "\n\ncontroller.remediationNamespaces: name the namespaces whose PicketRemediations count, for example [medik8s]: whoever may make one there has a Node fenced." }}
{{- end }}
{{- if .Values.gateways.enabled }}
{{- include "picket.checkGateways" . }}
{{- else }}
{{- if not .Values.controller.enabled }}
{{- fail "\n\ngateways.enabled and controller.enabled: one of the two at least, else nothing is installed." }}
{{- end }}
{{- if not .Values.controller.endpoints }}
{{- fail "\n\ncontroller.endpoints: without gateways of this chart (gateways.enabled=false) say where they answer: [https://HOST:7070]." }}
{{- end }}
{{- end }}
{{- end }}

{{- define "picket.checkGateways" -}}
{{- if and (not .Values.settings.toml) (not .Values.settings.existingConfigMap) }}
{{- fail "\n\nsettings.toml: the fleet is missing. Give the gateways' settings there (--set-file settings.toml=picket.toml), or name a ConfigMap with them by settings.existingConfigMap." }}
{{- end }}
{{- if and .Values.settings.toml .Values.settings.existingConfigMap }}
{{- fail "\n\nsettings.toml and settings.existingConfigMap: one of the two." }}
{{- end }}
{{- if not .Values.gateways.tls.secretName }}
{{- fail "\n\ngateways.tls.secretName: name a Secret with tls.crt, tls.key and ca.crt. Callers and gateways know each other by certificates; docs/chart.md says how they are made." }}
{{- end }}
{{- if and .Values.controller.enabled (not .Values.gateways.fenceThisCluster) }}
{{- fail "\n\ncontroller.enabled: it watches the Nodes of the cluster in which it runs, and by gateways.fenceThisCluster=false these are not the fleet's. Install it in the cluster whose Nodes are fenced, with gateways.enabled=false there." }}
{{- end }}
{{- $bundled := .Values.etcd.bundled }}
{{- if and (not .Values.etcd.endpoints) (not $bundled.enabled) }}
{{- fail (printf "\n\netcd: %d gateways without a shared store would each fence by themselves. Give etcd.endpoints, or set etcd.bundled.enabled." (int .Values.gateways.replicas)) }}
{{- end }}
{{- if and .Values.etcd.endpoints $bundled.enabled }}
{{- fail "\n\netcd.endpoints and etcd.bundled.enabled: one of the two." }}
{{- end }}
{{- if not .Values.etcd.tls.secretName }}
{{- fail "\n\netcd.tls.secretName: name a Secret with tls.crt, tls.key and ca.crt, by which the gateways and etcd know each other: whoever may write there may forge which nodes are fenced." }}
{{- end }}
{{- if $bundled.enabled }}
{{- if or (not $bundled.image.repository) (not $bundled.image.tag) }}
{{- fail "\n\netcd.bundled.image: name an image of etcd 3.6 by its repository and tag." }}
{{- end }}
{{- if not $bundled.tls.secretName }}
{{- fail "\n\netcd.bundled.tls.secretName: name a Secret with tls.crt, tls.key and ca.crt for etcd's members." }}
{{- end }}
{{- if and .Values.gateways.fenceThisCluster (not $bundled.nodes) }}
{{- fail "\n\netcd.bundled.nodes: name three Nodes. Gateways that fence Nodes of this cluster must know which of them carries which member of etcd: a fence that would cost etcd its quorum is BLOCKED (S17)." }}
{{- end }}
{{- if .Values.etcd.members }}
{{- fail "\n\netcd.members: belongs to etcd.endpoints; those of the bundled one are told by etcd.bundled.nodes." }}
{{- end }}
{{- end }}
{{- end }}

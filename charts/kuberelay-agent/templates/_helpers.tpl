{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "agent.name" -}}
{{- printf "%s-agent" .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "agent.labels" -}}
app.kubernetes.io/name: kuberelay-agent
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "agent.selector" -}}
app.kubernetes.io/name: kuberelay-agent
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" | quote }}
{{- end -}}

{{- define "agent.account" -}}
{{- .Values.serviceAccount.name | default (include "agent.name" .) -}}
{{- end -}}

{{- define "agent.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* One object of several that are named after the release; cut so that it stays unique. */}}
{{- define "agent.joins" -}}
{{- if or .Values.identity.joinToken .Values.identity.existingJoinTokenSecret }}yes{{ end -}}
{{- end -}}

{{- define "agent.pair" -}}
{{- if .Values.identity.certManager.enabled -}}
{{ include "agent.name" . }}-cert
{{- else -}}
{{ .Values.identity.existingSecret }}
{{- end -}}
{{- end -}}

{{/* What would only fail later, in words. */}}
{{- define "agent.check" -}}
{{- $v := .Values -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" (toString $v.cluster)) -}}
{{- fail (printf "cluster: %q is not possible: lower-case letters, digits and '-', at most 63 (a DNS label)" (toString $v.cluster)) -}}
{{- end -}}
{{- if not $v.hubs -}}
{{- fail "hubs: the agent port of at least one hub is needed, HOST:PORT" -}}
{{- end -}}
{{- range $v.hubs -}}
{{- if not (regexMatch "^(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5}$" (toString .)) -}}
{{- fail (printf "hubs: %q is not HOST:PORT" (toString .)) -}}
{{- end -}}
{{- end -}}
{{- if and $v.ca.pem $v.ca.existingConfigMap -}}
{{- fail "ca: give pem or existingConfigMap, not both" -}}
{{- end -}}
{{- if not (or $v.ca.pem $v.ca.existingConfigMap) -}}
{{- fail "ca: the root that hubs are verified against is needed (ca.pem or ca.existingConfigMap)" -}}
{{- end -}}
{{- $ways := 0 -}}
{{- if $v.identity.existingSecret }}{{ $ways = add1 $ways }}{{ end -}}
{{- if $v.identity.joinToken }}{{ $ways = add1 $ways }}{{ end -}}
{{- if $v.identity.existingJoinTokenSecret }}{{ $ways = add1 $ways }}{{ end -}}
{{- if $v.identity.certManager.enabled }}{{ $ways = add1 $ways }}{{ end -}}
{{- if ne (int $ways) 1 -}}
{{- fail "identity: give exactly one of existingSecret, joinToken, existingJoinTokenSecret and certManager.enabled" -}}
{{- end -}}
{{- if and $v.identity.joinToken (not (regexMatch "^kr1\\.[A-Za-z0-9]+\\.[A-Za-z0-9]+$" $v.identity.joinToken)) -}}
{{- fail "identity.joinToken: this is no token of kuberelayctl token create" -}}
{{- end -}}
{{- if and $v.identity.certManager.enabled (or (not $v.identity.certManager.trustDomain) (not $v.identity.certManager.issuerRef.name)) -}}
{{- fail "identity.certManager: trustDomain and issuerRef.name are needed" -}}
{{- end -}}
{{- if and (gt (int $v.replicaCount) 1) (include "agent.joins" .) -}}
{{- fail "replicaCount: with a join token there is one agent; install the chart again for a second one" -}}
{{- end -}}
{{- range $v.rbac.sync -}}
{{- if or (has "*" .resources) (and (has "" .apiGroups) (has "secrets" .resources) (not (has "secrets" ($v.policy.open | default list)))) -}}
{{- fail "rbac.sync: \"*\" would be Secrets too, and Secrets need policy.open: [secrets]" -}}
{{- end -}}
{{- end -}}
{{- end -}}

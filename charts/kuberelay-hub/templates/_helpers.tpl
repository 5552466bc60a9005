{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The name of every object. What is cut or changed gets a hash, so that it stays unique. */}}
{{- define "hub.name" -}}
{{- if and (le (len .Release.Name) 40) (regexMatch "^[a-z][-a-z0-9]*$" .Release.Name) -}}
{{ .Release.Name }}-hub
{{- else -}}
{{ printf "r-%s" (.Release.Name | replace "." "-") | trunc 31 | trimSuffix "-" }}-{{ sha256sum .Release.Name | trunc 8 }}-hub
{{- end -}}
{{- end -}}

{{- define "hub.selector" -}}
app.kubernetes.io/name: kuberelay-hub
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "hub.labels" -}}
{{ include "hub.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "hub.account" -}}
{{- .Values.serviceAccount.name | default (include "hub.name" .) -}}
{{- end -}}

{{- define "hub.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "hub.replica" -}}
{{- .Values.replica | default .Release.Name -}}
{{- end -}}

{{- define "hub.pair" -}}
{{- if .Values.tls.certManager.enabled -}}
{{ include "hub.name" . }}-cert
{{- else -}}
{{ .Values.tls.existingSecret }}
{{- end -}}
{{- end -}}

{{/* Not empty: there is another root for users. */}}
{{- define "hub.clientCa" -}}
{{- if or .Values.clientCa.pem .Values.clientCa.existingConfigMap }}yes{{ end -}}
{{- end -}}

{{- define "hub.authenticates" -}}
{{- if or .Values.authentication.issuers .Values.authentication.files }}yes{{ end -}}
{{- end -}}

{{/* What would only fail later, in words. */}}
{{- define "hub.check" -}}
{{- $v := .Values -}}
{{- if and $v.enrollment.signer.enabled (not $v.enrollment.signerSecret) -}}
{{- fail "enrollment.signer: it needs the CA of enrollment.signerSecret" -}}
{{- end -}}
{{- if and $v.enrollment.signer.enabled (eq (int $v.enrollment.signer.runAsUser) 65532) -}}
{{- fail "enrollment.signer.runAsUser: it must not be the hub's own user, 65532" -}}
{{- end -}}
{{- range $what, $ca := dict "ca" $v.ca "clientCa" $v.clientCa -}}
{{- if and $ca.pem $ca.existingConfigMap -}}
{{- fail (printf "%s: give pem or existingConfigMap, not both" $what) -}}
{{- end -}}
{{- end -}}
{{- if not (or $v.ca.pem $v.ca.existingConfigMap) -}}
{{- fail "ca: the root that agents and users are verified against is needed (ca.pem or ca.existingConfigMap)" -}}
{{- end -}}
{{- if eq (not $v.tls.existingSecret) (not $v.tls.certManager.enabled) -}}
{{- fail "tls: give exactly one of existingSecret and certManager.enabled" -}}
{{- end -}}
{{- if and $v.tls.certManager.enabled (or (not $v.tls.certManager.trustDomain) (not $v.tls.certManager.issuerRef.name)) -}}
{{- fail "tls.certManager: trustDomain and issuerRef.name are needed" -}}
{{- end -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" (include "hub.replica" .)) -}}
{{- fail (printf "replica: %q is not possible: lower-case letters, digits and '-', at most 63 (a DNS label)" (include "hub.replica" .)) -}}
{{- end -}}
{{- if and $v.hubDomain (not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" $v.hubDomain)) -}}
{{- fail (printf "hubDomain: %q is not a DNS name" $v.hubDomain) -}}
{{- end -}}
{{- range $cluster, $labels := $v.fleet.clusters -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" $cluster) -}}
{{- fail (printf "fleet.clusters: %q is not possible: lower-case letters, digits and '-', at most 63 (a DNS label)" $cluster) -}}
{{- end -}}
{{- end -}}
{{- range $name, $text := $v.authentication.files -}}
{{- if or (eq $name "issuers.yaml") (not (regexMatch "^[-._a-zA-Z0-9]+$" $name)) -}}
{{- fail (printf "authentication.files: %q is no name for a file here" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

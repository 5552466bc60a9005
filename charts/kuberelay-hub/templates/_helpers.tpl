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

{{/* A DURATION as the hub reads it, in milliseconds. */}}
{{- define "hub.ms" -}}
{{- $text := toString . -}}
{{- $factor := get (dict "" 1 "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexReplaceAll "^[0-9]+" $text "") -}}
{{- mul $factor (regexFind "^[0-9]+" $text | int64) -}}
{{- end -}}

{{/* How long a hub takes to end, in seconds: drainDelay and drainTimeout. */}}
{{- define "hub.drain" -}}
{{- $delay := include "hub.ms" (.Values.options.drainDelay | default "5s") | int64 -}}
{{- $timeout := include "hub.ms" (.Values.options.drainTimeout | default "60s") | int64 -}}
{{- div (add $delay $timeout 999) 1000 -}}
{{- end -}}

{{- define "hub.grace" -}}
{{- .Values.terminationGracePeriodSeconds | default (add (include "hub.drain" . | int64) 10) | int64 -}}
{{- end -}}

{{/* What would only fail later, in words. */}}
{{- define "hub.check" -}}
{{- include "hub.checkNames" . -}}
{{- include "hub.checkIssuers" . -}}
{{- include "hub.checkRules" . -}}
{{- include "hub.checkPod" . -}}
{{- end -}}

{{- define "hub.checkNames" -}}
{{- $v := .Values -}}
{{- if and $v.enrollment.signer.enabled (not $v.enrollment.signerSecret) -}}
{{- fail "enrollment.signer: it needs the CA of enrollment.signerSecret" -}}
{{- end -}}
{{- if gt (include "hub.ms" $v.enrollment.agentLifetime | int64) (include "hub.ms" $v.enrollment.signer.maxLifetime | int64) -}}
{{- fail (printf "enrollment.agentLifetime: %s is longer than enrollment.signer.maxLifetime, %s, so nothing would be certified" $v.enrollment.agentLifetime $v.enrollment.signer.maxLifetime) -}}
{{- end -}}
{{- if and $v.enrollment.signer.enabled (eq (int $v.enrollment.signer.runAsUser) 65532) -}}
{{- fail "enrollment.signer.runAsUser: it must not be the hub's own user, 65532" -}}
{{- end -}}
{{- range $what, $ca := dict "ca" $v.ca "clientCa" $v.clientCa -}}
{{- if and $ca.pem $ca.existingConfigMap -}}
{{- fail (printf "%s: give pem or existingConfigMap, not both" $what) -}}
{{- end -}}
{{- if and $ca.pem (or (not (contains "-----BEGIN CERTIFICATE-----" $ca.pem)) (contains "PRIVATE KEY-----" $ca.pem)) -}}
{{- fail (printf "%s.pem: the root's certificate is expected, as PEM text (--set-file %s.pem=ca.crt), and no key" $what $what) -}}
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

{{- define "hub.checkIssuers" -}}
{{- $v := .Values -}}
{{- $urls := list -}}
{{- range $v.authentication.issuers -}}
{{- $issuer := . -}}
{{- if has .url $urls -}}
{{- fail (printf "authentication.issuers: %s is there twice" .url) -}}
{{- end -}}
{{- $urls = append $urls .url -}}
{{- if eq (not .jwksFile) (not .jwksUrl) -}}
{{- fail (printf "authentication.issuers: %s: give one of jwksFile and jwksUrl" .url) -}}
{{- end -}}
{{- if ne (not .jwksUrl) (not .caFile) -}}
{{- fail (printf "authentication.issuers: %s: jwksUrl needs caFile, and only that does" .url) -}}
{{- end -}}
{{- range $key := list "jwksFile" "caFile" -}}
{{- with get $issuer $key -}}
{{- if not (and (hasPrefix "/etc/kuberelay/authentication/" .) (hasKey $v.authentication.files (base .)) (eq (dir .) "/etc/kuberelay/authentication")) -}}
{{- fail (printf "authentication.issuers: %s: %s: /etc/kuberelay/authentication/NAME of one of authentication.files is expected, not %q" $issuer.url $key .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .jwksUrl $v.networkPolicy.enabled -}}
{{- $port := regexFind ":[0-9]+$" (regexFind "^https://[^/]+" .jwksUrl) | trimPrefix ":" | default "443" | int -}}
{{- $open := false -}}
{{- range $v.networkPolicy.issuerPorts }}{{ if eq (int .) $port }}{{ $open = true }}{{ end }}{{ end -}}
{{- if not $open -}}
{{- fail (printf "networkPolicy.issuerPorts: has to have %d, for %s" $port .jwksUrl) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Clusters of a project, reader or profile ("what"): names or a selector. */}}
{{- define "hub.checkClusters" -}}
{{- if and .of.clusters .of.clusterSelector -}}
{{- fail (printf "%s: give clusters or clusterSelector, not both" .what) -}}
{{- end -}}
{{- if and .needed (not .of.clusters) (not .of.clusterSelector) -}}
{{- fail (printf "%s: clusters (\"*\" for all) or clusterSelector is needed" .what) -}}
{{- end -}}
{{- end -}}

{{- define "hub.checkRules" -}}
{{- $v := .Values -}}
{{- $names := list -}}
{{- range $v.projects -}}
{{- $what := printf "projects: %s" .name -}}
{{- if has .name $names -}}
{{- fail (printf "%s is there twice" $what) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if not (or .members.users .members.groups .members.memberTokens) -}}
{{- fail (printf "%s: members: users, groups or memberTokens are needed" $what) -}}
{{- end -}}
{{- range concat (.members.users | default list) (.members.groups | default list) -}}
{{- if hasPrefix "system:" . -}}
{{- fail (printf "%s: members: nobody is known as %q to a hub" $what .) -}}
{{- end -}}
{{- end -}}
{{- if has "*" (.members.groups | default list) -}}
{{- fail (printf "%s: members: \"*\" is for users; groups have names" $what) -}}
{{- end -}}
{{- include "hub.checkClusters" (dict "what" $what "of" . "needed" true) -}}
{{- range .rules -}}
{{- if not (or .resources .nonResourcePaths) -}}
{{- fail (printf "%s: a rule needs resources or nonResourcePaths" $what) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $i, $reader := $v.fleet.readers -}}
{{- $what := printf "fleet.readers[%d]" $i -}}
{{- if not (or .users .groups) -}}
{{- fail (printf "%s: users or groups are needed" $what) -}}
{{- end -}}
{{- include "hub.checkClusters" (dict "what" $what "of" . "needed" true) -}}
{{- end -}}
{{- $names = list -}}
{{- range $v.fleet.profiles -}}
{{- $what := printf "fleet.profiles: %s" .name -}}
{{- if has .name $names -}}
{{- fail (printf "%s is there twice" $what) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- include "hub.checkClusters" (dict "what" $what "of" . "needed" false) -}}
{{- if and .always (has "*" .resources) -}}
{{- fail (printf "%s: always needs resources by their names" $what) -}}
{{- end -}}
{{- if and .metadataOnly (or .keep .drop) -}}
{{- fail (printf "%s: metadataOnly goes with neither keep nor drop" $what) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "hub.checkPod" -}}
{{- $v := .Values -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- fail "serviceAccount.name: is needed if none is created" -}}
{{- end -}}
{{- range $key, $_ := $v.podLabels -}}
{{- if hasPrefix "app.kubernetes.io/" $key -}}
{{- fail (printf "podLabels: %q is one of the chart's own" $key) -}}
{{- end -}}
{{- end -}}
{{- if hasKey $v.podAnnotations "kuberelay.io/config" -}}
{{- fail "podAnnotations: \"kuberelay.io/config\" is the chart's own" -}}
{{- end -}}
{{- /* What the hub itself would refuse, in milliseconds. */ -}}
{{- $bounds := dict
    "holdTime" (list 0 60000)
    "startGrace" (list 0 600000)
    "fleetWait" (list 0 60000)
    "requestTimeout" (list 100 600000)
    "heartbeat" (list 100 60000)
    "silenceTimeout" (list 300 300000)
    "stallTimeout" (list 0 3600000)
    "idleTimeout" (list 1000 3600000)
    "drainDelay" (list 0 300000)
    "drainTimeout" (list 0 3600000)
    "unsubscribeAfter" (list 0 86400000)
    "agentLifetime" (list 5000 7776000000) -}}
{{- $given := merge (dict "agentLifetime" $v.enrollment.agentLifetime) $v.options -}}
{{- range $key, $bound := $bounds -}}
{{- if hasKey $given $key -}}
{{- $ms := include "hub.ms" (get $given $key) | int64 -}}
{{- if or (lt $ms (index $bound 0 | int64)) (gt $ms (index $bound 1 | int64)) -}}
{{- fail (printf "%s: %v is not possible: %d to %d milliseconds" (ternary "enrollment.agentLifetime" (printf "options.%s" $key) (eq $key "agentLifetime")) (get $given $key) (index $bound 0) (index $bound 1)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if lt (include "hub.grace" . | int64) (include "hub.drain" . | int64) -}}
{{- fail (printf "terminationGracePeriodSeconds: a hub takes %s seconds to drain (options.drainDelay and drainTimeout)" (include "hub.drain" .)) -}}
{{- end -}}
{{- end -}}

{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The name of nearly every object. What is cut or changed gets a hash, so that it stays unique. */}}
{{- define "agent.name" -}}
{{- if and (le (len .Release.Name) 45) (regexMatch "^[a-z][-a-z0-9]*$" .Release.Name) -}}
{{ .Release.Name }}-agent
{{- else -}}
{{ printf "r-%s" (.Release.Name | replace "." "-") | trunc 36 | trimSuffix "-" }}-{{ sha256sum .Release.Name | trunc 8 }}-agent
{{- end -}}
{{- end -}}

{{/* The same where there is no namespace. */}}
{{- define "agent.clusterName" -}}
{{ include "agent.name" . }}-{{ printf "%s/%s" .Release.Namespace .Release.Name | sha256sum | trunc 8 }}
{{- end -}}

{{- define "agent.labels" -}}
app.kubernetes.io/name: kuberelay-agent
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "agent.selector" -}}
app.kubernetes.io/name: kuberelay-agent
app.kubernetes.io/instance: {{ .Release.Name | quote }}
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

{{/* Not empty: the agent makes its own key, and joins with a token. */}}
{{- define "agent.joins" -}}
{{- if or .Values.identity.joinToken .Values.identity.existingJoinTokenSecret }}yes{{ end -}}
{{- end -}}

{{/* YAML reads a plain `off` as false. */}}
{{- define "agent.mode" -}}
{{ if .Values.policy.mode }}{{ .Values.policy.mode }}{{ else }}off{{ end }}
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
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" (toString $v.instance)) -}}
{{- fail (printf "instance: %q is not possible: lower-case letters, digits and '-', at most 63 (a DNS label)" (toString $v.instance)) -}}
{{- end -}}
{{- if not $v.hubs -}}
{{- fail "hubs: the agent port of at least one hub is needed, HOST:PORT" -}}
{{- end -}}
{{- range $v.hubs -}}
{{- if not (regexMatch "^(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9.-]+):[0-9]{1,5}$" (toString .)) -}}
{{- fail (printf "hubs: %q is not HOST:PORT" (toString .)) -}}
{{- end -}}
{{- $port := regexReplaceAll "^.*:" (toString .) "" | atoi -}}
{{- if or (lt $port 1) (gt $port 65535) -}}
{{- fail (printf "hubs: %q has no port that there is" (toString .)) -}}
{{- end -}}
{{- end -}}
{{- $roots := 0 -}}
{{- range list $v.ca.pem $v.ca.existingConfigMap $v.ca.pin }}{{ if . }}{{ $roots = add1 $roots }}{{ end }}{{ end -}}
{{- if gt (int $roots) 1 -}}
{{- fail "ca: give one of pem, existingConfigMap and pin, not both" -}}
{{- end -}}
{{- if eq (int $roots) 0 -}}
{{- fail "ca: the root that hubs are verified against is needed (ca.pem, ca.existingConfigMap or ca.pin)" -}}
{{- end -}}
{{- if and $v.ca.pin (not (include "agent.joins" .)) -}}
{{- fail "ca.pin: only with a join token; else give the root itself (ca.pem or ca.existingConfigMap)" -}}
{{- end -}}
{{- if $v.proxy -}}
{{- if contains "#" $v.proxy -}}
{{- fail "proxy: \"#\" is written %23 in a URL" -}}
{{- end -}}
{{- if not (regexMatch "^http://[^\\s?]+$" $v.proxy) -}}
{{- fail "proxy: http://[USER:PASSWORD@]HOST:PORT is expected, with what is special written as %NN" -}}
{{- end -}}
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
{{- if and $v.jwks (ne $v.policy.identity "verified") -}}
{{- fail "jwks: is for policy.identity verified only" -}}
{{- end -}}
{{- if and (eq $v.policy.identity "verified") (not (and $v.policy.verified $v.jwks)) -}}
{{- fail "policy.identity: verified needs policy.verified (issuer, audience) and jwks" -}}
{{- end -}}
{{- if and (gt (int $v.replicaCount) 1) (include "agent.joins" .) -}}
{{- fail "replicaCount: with a join token there is one agent; install the chart again for a second one" -}}
{{- end -}}
{{- range $v.rbac.sync -}}
{{- if or (has "*" .resources) (and (has "" .apiGroups) (has "secrets" .resources) (not (has "secrets" ($v.policy.open | default list)))) -}}
{{- fail "rbac.sync: \"*\" would be Secrets too, and Secrets need policy.open: [secrets]" -}}
{{- end -}}
{{- end -}}
{{- range $v.systemUsers -}}
{{- $pattern := ternary "^system:serviceaccount:[a-z0-9-]+:([a-z0-9.-]+|\\*)$" "^system:[^*]+$" (hasPrefix "system:serviceaccount:" .) -}}
{{- if not (regexMatch $pattern .) -}}
{{- fail (printf "systemUsers: %q: RBAC has no prefixes; possible are system:serviceaccount:NAMESPACE:NAME, system:serviceaccount:NAMESPACE:* and whole names" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* RBAC rules of what the policy's rules allow in one namespace ("*": in all), for identity fixed. */}}
{{- define "agent.policyRules" -}}
{{- $reads := list "get" "list" "watch" -}}
{{- range $rule := .policy.rules -}}
{{- if has $.namespace (.namespaces | default (list "*")) -}}
{{- $verbs := .verbs -}}
{{- if ne $.policy.mode "read-write" -}}
{{- $verbs = list -}}
{{- range $verb := $reads -}}
{{- if or (has "*" $rule.verbs) (has $verb $rule.verbs) }}{{ $verbs = append $verbs $verb }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range .resources -}}
{{- if eq . "*" -}}
{{- fail "policy.rules: \"*\" in resources cannot be said in RBAC without what the policy closes: name resources, or give rbac.fixedRules" -}}
{{- end -}}
{{- $path := splitn "/" 2 . -}}
{{- $name := splitn "." 2 $path._0 }}
{{- $mine := $verbs }}
{{- if has "connect" $verbs }}
{{- /* RBAC has no such verb: what connects is a get or a create, behind /proxy whatever the method is. */ -}}
{{- $mine = without $verbs "connect" | concat (ternary (list "get" "create" "update" "patch" "delete") (list "get" "create") (eq ($path._1 | default "") "proxy")) | uniq }}
{{- if not (has ($path._1 | default "") (ternary (list "exec" "attach" "portforward" "proxy") (list "proxy") (eq (toString $.policy.exec) "true"))) }}{{ $mine = without $verbs "connect" }}{{ end }}
{{- end }}
{{- if $mine }}
- apiGroups: [{{ $name._1 | default "" | quote }}]
  resources: [{{ if $path._1 }}{{ printf "%s/%s" $name._0 $path._1 | quote }}{{ else }}{{ $name._0 | quote }}{{ end }}]
  verbs: {{ toJson $mine }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

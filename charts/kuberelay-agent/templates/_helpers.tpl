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

{{/* The port of health and metrics. */}}
{{- define "agent.adminPort" -}}
{{- regexReplaceAll "^.*:" .Values.adminListen "" -}}
{{- end -}}

{{/* A DURATION as the agent reads it, in milliseconds. */}}
{{- define "agent.ms" -}}
{{- $text := toString . -}}
{{- $factor := get (dict "" 1 "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexReplaceAll "^[0-9]+" $text "") -}}
{{- mul $factor (regexFind "^[0-9]+" $text | int64) -}}
{{- end -}}

{{/* How long a pod may take to end: drainTimeout, and a little more. */}}
{{- define "agent.grace" -}}
{{- add 15 (div (include "agent.ms" (.Values.options.drainTimeout | default "30s") | int64) 1000) -}}
{{- end -}}

{{/* What would only fail later, in words. */}}
{{- define "agent.check" -}}
{{- include "agent.checkIdentity" . -}}
{{- include "agent.checkRights" . -}}
{{- include "agent.checkPod" . -}}
{{- end -}}

{{- define "agent.checkIdentity" -}}
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
{{- if and $v.ca.pem (or (not (contains "-----BEGIN CERTIFICATE-----" $v.ca.pem)) (contains "PRIVATE KEY-----" $v.ca.pem)) -}}
{{- fail "ca.pem: the root's certificate is expected, as PEM text (--set-file ca.pem=ca.crt), and no key" -}}
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
{{- if and (gt (int $v.replicaCount) 1) (include "agent.joins" .) -}}
{{- fail "replicaCount: with a join token there is one agent; install the chart again for a second one" -}}
{{- end -}}
{{- end -}}

{{- define "agent.checkRights" -}}
{{- $v := .Values -}}
{{- if and $v.policy.exec (include "agent.mode" . | ne "read-write") -}}
{{- fail "policy.exec: needs policy.mode read-write" -}}
{{- end -}}
{{- if and $v.jwks (ne $v.policy.identity "verified") -}}
{{- fail "jwks: is for policy.identity verified only" -}}
{{- end -}}
{{- if and (eq $v.policy.identity "verified") (not (and $v.policy.verified $v.jwks)) -}}
{{- fail "policy.identity: verified needs policy.verified (issuer, audience) and jwks" -}}
{{- end -}}
{{- if and (eq $v.policy.identity "fixed") $v.rbac.create (include "agent.mode" . | ne "off") (not $v.policy.rules) (not $v.rbac.fixedRules) -}}
{{- fail "policy.identity: fixed needs policy.rules or rbac.fixedRules, or the agent's account may do nothing" -}}
{{- end -}}
{{- if and $v.rbac.fixedRules (ne $v.policy.identity "fixed") -}}
{{- fail "rbac.fixedRules: is for policy.identity fixed only" -}}
{{- end -}}
{{- range $v.rbac.sync -}}
{{- $core := or (has "" .apiGroups) (has "*" .apiGroups) -}}
{{- if or (has "*" .resources) (and $core (has "secrets" .resources) (not (has "secrets" ($v.policy.open | default list)))) -}}
{{- fail "rbac.sync: \"*\" would be Secrets too, and Secrets need policy.open: [secrets]" -}}
{{- end -}}
{{- if and $core (has "secrets" .resources) (has "secrets" (ternary $v.options.syncDeny (list "secrets") (hasKey $v.options "syncDeny"))) -}}
{{- fail "rbac.sync: Secrets also need options.syncDeny without secrets, which is its default" -}}
{{- end -}}
{{- end -}}
{{- range $v.rbac.impersonate.users -}}
{{- if not (or (hasPrefix $v.userPrefix .) (has . $v.systemUsers)) -}}
{{- fail (printf "rbac.impersonate.users: %q does not begin with userPrefix, %q, so the agent never acts as it" . $v.userPrefix) -}}
{{- end -}}
{{- end -}}
{{- range $v.rbac.impersonate.groups -}}
{{- if not (or (hasPrefix $v.userPrefix .) (has . (values ($v.policy.groups | default dict)))) -}}
{{- fail (printf "rbac.impersonate.groups: %q does not begin with userPrefix, %q, so the agent never acts as it" . $v.userPrefix) -}}
{{- end -}}
{{- end -}}
{{- range $v.systemUsers -}}
{{- $pattern := ternary "^system:serviceaccount:[a-z0-9-]+:([a-z0-9.-]+|\\*)$" "^system:[^*]+$" (hasPrefix "system:serviceaccount:" .) -}}
{{- if not (regexMatch $pattern .) -}}
{{- fail (printf "systemUsers: %q: RBAC has no prefixes; possible are system:serviceaccount:NAMESPACE:NAME, system:serviceaccount:NAMESPACE:* and whole names" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "agent.checkPod" -}}
{{- $v := .Values -}}
{{- if not (regexMatch "^(0\\.0\\.0\\.0|\\[::\\]):[1-9][0-9]{3,4}$" $v.adminListen) -}}
{{- fail (printf "adminListen: %q is not possible: 0.0.0.0:PORT or [::]:PORT, where the kubelet's probes come, with a PORT from 1024" $v.adminListen) -}}
{{- end -}}
{{- $port := include "agent.adminPort" . | int -}}
{{- if or (lt $port 1024) (gt $port 65535) -}}
{{- fail (printf "adminListen: %q: the PORT is not from 1024 to 65535" $v.adminListen) -}}
{{- end -}}
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
{{- /* What the agent itself would refuse, in milliseconds. */ -}}
{{- $bounds := dict
    "silenceTimeout" (list 300 300000)
    "reconnectBase" (list 10 60000)
    "reconnectMax" (list 10 3600000)
    "apiTimeout" (list 100 60000)
    "drainTimeout" (list 0 3600000)
    "discoveryInterval" (list 1000 3600000) -}}
{{- range $key, $bound := $bounds -}}
{{- if hasKey $v.options $key -}}
{{- $ms := include "agent.ms" (get $v.options $key) | int64 -}}
{{- if or (lt $ms (index $bound 0 | int64)) (gt $ms (index $bound 1 | int64)) -}}
{{- fail (printf "options.%s: %v is not possible: %d to %d milliseconds" $key (get $v.options $key) (index $bound 0) (index $bound 1)) -}}
{{- end -}}
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

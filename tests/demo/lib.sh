# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # sourced by demo.sh: what it sets is used here, and back
# Words, waiting, processes and checks of the demo.

say() { printf '%s\n' "$@"; }
title() { printf '\n== %s\n' "$*"; }

usage_error() {
    printf 'demo: %s\n' "$1" >&2
    exit 2
}

# give_up TEXT [LOG]: the end, with the last lines of a log.
give_up() {
    printf 'demo: %s\n' "$1" >&2
    if [[ -n ${2:-} && -f $dir/$2.log ]]; then
        tail -n 15 "$dir/$2.log" | sed "s/^/  $2: /" >&2
    fi
    exit 1
}

# start NAME PROGRAM ARGUMENT...: in the background, its output in NAME.log.
start() {
    local name=$1
    shift
    "$@" >"$dir/$name.log" 2>&1 &
    pids+=($!)
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        if [[ $SECONDS -ge $end ]]; then
            printf 'demo: waited in vain for %s\n' "$what" >&2
            return 1
        fi
        sleep 0.05
    done
}

has_listening() { grep -Eqs "event=listening.* port=$2( |\$)" "$dir/$1.log"; }

# address_of NAME PORT: from the program's log.
address_of() {
    wait_for 20 "the $2 port of $1" has_listening "$1" "$2" || return 1
    sed -nE "s/.*event=listening.* address=\"?([^ \"]*)\"?.*/\1/p" \
        <(grep -E " port=$2( |\$)" "$dir/$1.log") | head -n1
}

# is_ready HOST:PORT: whether /readyz of an admin port (plain HTTP) says 200.
is_ready() {
    local line
    { exec 3<>"/dev/tcp/${1%:*}/${1##*:}"; } 2>/dev/null || return 1
    printf 'GET /readyz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$1" >&3
    read -r -t 5 line <&3 || true
    exec 3>&-
    [[ $line == *" 200"* ]]
}

clean_up() {
    local rc=$1 pid end=$((SECONDS + 5))
    trap - EXIT INT TERM
    if [[ ${#pids[@]} -gt 0 ]]; then
        kill "${pids[@]}" 2>/dev/null || true
        for pid in "${pids[@]}"; do
            while kill -0 "$pid" 2>/dev/null && [[ $SECONDS -lt $end ]]; do sleep 0.05; done
            kill -9 "$pid" 2>/dev/null || true
        done
        wait 2>/dev/null || true
    fi
    if [[ $rc -eq 130 && $once == no ]]; then rc=0; fi # Ctrl-C is how it is meant to end
    if [[ $rc -eq 0 && -n $dir && -z ${KUBERELAY_DEMO_DIR:-} ]]; then
        rm -rf "$dir"
    elif [[ -n $dir ]]; then
        say "" "The files are left in $dir"
    fi
    exit "$rc"
}

# A kubectl on the PATH may be a dispatcher that asks the server for its version first; the
# versioned programs beside it are the real ones.
find_kubectl() {
    local found candidate version
    found=${KUBECTL:-$(command -v kubectl || true)}
    [[ -n $found ]] || give_up "no kubectl: install one (Debian: kubernetes-client)"
    kubectl=$(realpath "$found")
    if [[ -z ${KUBECTL:-} ]]; then
        candidate=$(printf '%s\n' "$kubectl".1.[0-9]* | sort -V | tail -n1)
        if [[ -x $candidate ]]; then kubectl=$candidate; fi
    fi
    version=$("$kubectl" version --client 2>/dev/null || true)
    kubectl_minor=$(sed -nE 's/.*v1\.([0-9]+)\..*/\1/p' <<<"$version" | head -n1)
    [[ -n $kubectl_minor && $kubectl_minor -ge 20 ]] ||
        give_up "$kubectl is not kubectl 1.20 or newer"
}

# k ARGUMENT...: kubectl with the demo's kubeconfig and a home of its own.
k() {
    HOME=$dir/home KUBECONFIG=$dir/kubeconfig "$kubectl" --cache-dir "$dir/cache" "$@"
}

# right TEXT / not_right TEXT: the verdict on an answer, shown where it is not as it should be.
right() { checks=$((checks + 1)); }
not_right() {
    checks=$((checks + 1))
    wrong=$((wrong + 1))
    printf '!! not right: %s\n' "$1"
}

# shown "PATTERN" ARGUMENT...: runs kubectl, shows it, and checks that it succeeded and that its
# output holds a line that matches.
shown() {
    local pattern=$1 rc=0
    shift
    show_command "$@"
    k "$@" >"$dir/answer" 2>&1 </dev/null || rc=$?
    show_answer
    verdict "$rc" "$pattern" "kubectl $*"
}

# As one would type it: what the shell would read otherwise is in quotes.
show_command() {
    local word
    printf '\n$ kubectl'
    for word in "$@"; do
        if [[ $word =~ [^A-Za-z0-9_./:=,@%+-] ]]; then word="'$word'"; fi
        printf ' %s' "$word"
    done
    printf '\n'
}

# A long answer is cut for the eye, not for the check.
show_answer() {
    local lines
    lines=$(wc -l <"$dir/answer")
    if [[ $lines -le 16 ]]; then
        cat "$dir/answer"
    else
        head -n 12 "$dir/answer"
        printf '  (... %d more lines)\n' $((lines - 12))
    fi
}

verdict() {
    if [[ $1 -ne 0 ]]; then
        not_right "$3 ended with $1"
    elif ! grep -Eq -- "$2" "$dir/answer"; then
        not_right "$3 answered without a line that matches $2"
    else
        right
    fi
}

# refused "PATTERN" ARGUMENT...: kubectl must fail, and say so.
refused() {
    local pattern=$1
    shift
    show_command "$@"
    if k "$@" >"$dir/answer" 2>&1 </dev/null; then
        show_answer
        not_right "kubectl $* succeeded"
    else
        show_answer
        verdict 0 "$pattern" "kubectl $*"
    fi
}

absent() { refused NotFound "$@"; }

# stop PID: ends one that was started here.
stop() {
    local pid kept=()
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    for pid in "${pids[@]}"; do
        if [[ $pid != "$1" ]]; then kept+=("$pid"); fi
    done
    pids=("${kept[@]}")
}

where_it_is() {
    local cluster
    say "kubeconfig       $dir/kubeconfig  (contexts: ${clusters[*]})" \
        "                 export KUBECONFIG=$dir/kubeconfig; kubectl get pods --context ${clusters[0]}"
    printf '%s\n' "hub              https://$api (clients)  $agents (agents)" \
        "                 http://$hub_admin/metrics  http://$hub_admin/readyz" \
        "                 $dir/hub.yaml  $dir/hub.log"
    for cluster in "${clusters[@]}"; do
        printf '%s\n' "agent            $cluster: http://${agent_admin[$cluster]}/metrics" \
            "                 $dir/agent-$cluster.yaml  $dir/agent-$cluster.log"
    done
    if [[ -z $user_kubeconfig ]]; then
        printf '%s\n' "clusters         simulated by kubesim: $dir/kubesim.log, $dir/clusters/"
    fi
    printf '%s\n' "certificates     $dir/pki"
}

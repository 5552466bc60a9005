#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shows kubectl working through a hub and agents. Called by `./dev demo`, after the build.
#
#   demo.sh                               three simulated clusters, until Ctrl-C
#   demo.sh --once                        the same, checks every answer and stops; 0: all were right
#   demo.sh --kubeconfig FILE [--context NAME] [--once]
#                                         a cluster of yours behind an agent; nothing is written to it
#
# KUBERELAY_BIN: where the programs are (build/release). KUBERELAY_DEMO_DIR: where files go.
# KUBECTL: which kubectl is shown.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=${KUBERELAY_BIN:-$root/build/release}
once=no
user_kubeconfig=
user_context=
pids=()
checks=0
wrong=0
dir=
kubectl=
kubectl_minor=
# shellcheck source=tests/demo/lib.sh
source "$here/lib.sh"
# shellcheck source=tests/demo/tour.sh
source "$here/tour.sh"

while [[ $# -gt 0 ]]; do
    case $1 in
    --once) once=yes ;;
    --kubeconfig | --context)
        [[ $# -ge 2 ]] || usage_error "$1 needs a value"
        if [[ $1 == --context ]]; then user_context=$2; else user_kubeconfig=$2; fi
        shift
        ;;
    -h | --help)
        sed -n '3,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) usage_error "unknown argument $1" ;;
    esac
    shift
done
if [[ -n $user_context && -z $user_kubeconfig ]]; then
    usage_error "--context goes with --kubeconfig"
fi
if [[ -n $user_kubeconfig && ! -r $user_kubeconfig ]]; then
    usage_error "$user_kubeconfig cannot be read"
fi

if [[ -n $user_kubeconfig ]]; then
    clusters=(mine)
else
    clusters=(edge-1 edge-2 edge-3)
fi

start_clusters() { # the API servers that the hub does not know
    if [[ -n $user_kubeconfig ]]; then
        cluster_kubeconfig() { realpath "$user_kubeconfig"; }
        return
    fi
    local names
    names=$(IFS=,; echo "${clusters[*]}")
    start kubesim "$bin/kubesim" --pki "$dir/clusters" --clusters ${#clusters[@]} --names "$names" \
        --pods 60 --nodes 3 --churn 1 --seed 7
    wait_for 20 "kubesim's clusters" grep -qs event=ready "$dir/kubesim.log"
    cluster_kubeconfig() { echo "$dir/clusters/kubeconfig-$1"; }
}

make_pki() {
    local ca=(--dir "$dir/pki")
    {
        "$bin/kuberelayctl" ca init "${ca[@]}"
        "$bin/kuberelayctl" ca init "${ca[@]}" --agent-ca
        "$bin/kuberelayctl" ca issue hub "${ca[@]}" --name hub-1 --dns localhost --ip 127.0.0.1
        "$bin/kuberelayctl" ca issue user "${ca[@]}" --name demo
    } >"$dir/pki.log" 2>&1 || give_up "making certificates failed" pki
}

start_hub() {
    cat >"$dir/hub.yaml" <<YAML
apiListen: 127.0.0.1:0
agentListen: 127.0.0.1:0
adminListen: 127.0.0.1:0
caFile: $dir/pki/ca.crt
certFile: $dir/pki/hub-hub-1.crt
keyFile: $dir/pki/hub-hub-1.key
drainDelay: 0s
drainTimeout: 1s
startGrace: 2s
fleetFile: $dir/fleet.yaml
registration: required
signerCertFile: $dir/pki/agent-ca.crt
signerKeyFile: $dir/pki/agent-ca.key
stateDir: $dir/state
adminSocket: $dir/admin.sock
YAML
    cat >"$dir/fleet.yaml" <<'YAML'
clusters:
  edge-1: {region: eu}
  edge-2: {region: eu}
  edge-3: {region: us}
readers:
- users: [demo]
  clusters: ["*"]
  resources: ["*"]
profiles:
- name: pods
  resources: [pods]
  always: true
YAML
    start hub "$bin/kuberelay-hub" --config "$dir/hub.yaml"
    api=$(address_of hub api) || give_up "the hub did not start" hub
    agents=$(address_of hub agent) || give_up "the hub did not start" hub
    hub_admin=$(address_of hub admin) || give_up "the hub did not start" hub
    wait_for 20 "the hub's readiness" is_ready "$hub_admin"
}

start_agent() {
    local cluster=$1 token context_line='' policy_line=''
    token=$("$bin/kuberelayctl" token create --cluster "$cluster" --auto-accept \
        --socket "$dir/admin.sock" 2>"$dir/token.log") || give_up "no token for $cluster" token
    if [[ -n $user_context ]]; then context_line="context: $user_context"; fi
    # A cluster of the caller's is only read, which is what an agent allows without a file.
    if [[ -z $user_kubeconfig ]]; then
        printf 'mode: read-write\nexec: true\n' >"$dir/policy.yaml"
        policy_line="policyFile: $dir/policy.yaml"
    fi
    cat >"$dir/agent-$cluster.yaml" <<YAML
hubs: ["$agents"]
adminListen: 127.0.0.1:0
caFile: $dir/pki/ca.crt
stateDir: $dir/agent-$cluster
joinToken: $token
kubeconfig: $(cluster_kubeconfig "$cluster")
drainTimeout: 1s
$context_line
$policy_line
YAML
    start "agent-$cluster" "$bin/kuberelay-agent" --config "$dir/agent-$cluster.yaml"
    agent_pid[$cluster]=${pids[-1]}
    agent_admin[$cluster]=$(address_of "agent-$cluster" admin) ||
        give_up "the agent of $cluster did not start" "agent-$cluster"
}

write_kubeconfig() {
    local flags=(--fleet) cluster
    for cluster in "${clusters[@]}"; do flags+=(--cluster "$cluster"); done
    "$bin/kuberelayctl" kubeconfig --server "https://$api" --ca "$dir/pki/ca.crt" \
        --cert "$dir/pki/user-demo.crt" --key "$dir/pki/user-demo.key" "${flags[@]}" \
        --out "$dir/kubeconfig" >"$dir/kubeconfig.log" 2>&1 ||
        give_up "writing the kubeconfig failed" kubeconfig
}

trap 'clean_up $?' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

dir=${KUBERELAY_DEMO_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/kuberelay-demo.XXXXXX")}
mkdir -p "$dir"
find_kubectl
for program in kuberelay-hub kuberelay-agent kuberelayctl; do
    [[ -x $bin/$program ]] || give_up "$bin/$program is not there: run ./dev build"
done
declare -A agent_admin=() agent_pid=()
title "Starting ${#clusters[@]} cluster(s), a hub, and an agent in front of each cluster"
make_pki
start_clusters
start_hub
for cluster in "${clusters[@]}"; do start_agent "$cluster"; done
write_kubeconfig
for cluster in "${clusters[@]}"; do
    wait_for 30 "the agent of $cluster" is_ready "${agent_admin[$cluster]}" ||
        give_up "the agent of $cluster is not ready" "agent-$cluster"
done
say "ready; kubectl is $kubectl (1.$kubectl_minor)"

if [[ -n $user_kubeconfig ]]; then tour_of_yours; else tour; fi

if [[ $once == yes ]]; then
    title "$((checks - wrong)) of $checks answers were right"
    exit $((wrong != 0))
fi
title "Where everything is"
where_it_is
say "It stays up until Ctrl-C."
# The trap ends all; a program that ends by itself is worth a word.
wait -n "${pids[@]}" || true
give_up "a program has ended" hub

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # sourced by demo.sh
# What the demo shows with kubectl, and what must come back.

tour() {
    local cluster
    title "Reading: each context is a cluster that dialled out to the hub"
    for cluster in "${clusters[@]}"; do
        shown '^node-000 +Ready' get nodes --context "$cluster"
    done
    shown '^web-[a-z0-9]+-[a-z0-9]+ +[01]/1 ' get pods
    shown '^[a-z-]+ +web ' get deployments --all-namespaces
    shown '^deployments +deploy +' api-resources
    shown 'Server Version|v1\.33\.0' version
    tour_writes
    tour_watch
    tour_logs
    tour_deletes
    title "The three clusters are three: what was written to ${clusters[0]} is not in ${clusters[1]}"
    shown '^settings ' get configmap settings --context "${clusters[0]}"
    absent get configmap settings --context "${clusters[1]}"
    shown 'configmap "settings" deleted' delete configmap settings --context "${clusters[0]}"
    tour_fleet
}

# All clusters at once, from the hub's memory.
tour_fleet() {
    title "The fleet view: all clusters at once (context fleet, https://HUB/clusters/*)"
    wait_for 30 "the fleet view" fleet_answers || not_right "the fleet view does not answer"
    shown '^NAMESPACE +CLUSTER +NAME ' get pods --all-namespaces --context fleet
    count_clusters 3 get pods --all-namespaces --context fleet
    shown "^[a-z-]+ +${clusters[2]} +" get pods --all-namespaces --context fleet \
        -l "kuberelay.io/cluster=${clusters[2]}"
    count_clusters 1 get pods --all-namespaces --context fleet \
        -l "kuberelay.io/cluster=${clusters[2]}"
    say "" "Deployments were not synced until now; the first reader waits for them:"
    shown "^[a-z-]+ +${clusters[0]} +web " get deployments --all-namespaces --context fleet
    say "" "Secrets are never meant by \"*\":"
    refused 'secrets is forbidden' get secrets --all-namespaces --context fleet
    tour_fleet_watch
    tour_fleet_away
    tour_fleet_bytes
    tour_denied
}

# Somebody at the hub shuts a cluster out while it is watched, and takes it back.
tour_denied() {
    local out=${clusters[2]} watcher began
    title "$out is denied while a watch runs on it"
    show_command get pods -w --context "$out"
    say "(goes on in the background)"
    k get pods -w --context "$out" >"$dir/watch" 2>&1 &
    watcher=$!
    pids+=("$watcher")
    wait_for 15 "the first line of the watch" watch_shows '^web-' ||
        not_right "the watch does not begin"
    say "" "\$ kuberelayctl cluster deny $out"
    began=$SECONDS
    "$bin/kuberelayctl" cluster deny "$out" --socket "$dir/admin.sock"
    if wait_for 5 "the end of the watch" is_over "$watcher"; then
        say "the watch ended within $((SECONDS - began + 1)) s"
        right
    else
        not_right "the watch goes on"
        stop "$watcher"
    fi
    refused '.' get pods --context "$out"
    wait_for 5 "its end in the fleet view" fleet_lacks "$out" || not_right "$out is still in the fleet view"
    count_clusters 2 get pods --all-namespaces --context fleet
    say "" "\$ kuberelayctl cluster accept $out"
    "$bin/kuberelayctl" cluster accept "$out" --socket "$dir/admin.sock"
    kill -HUP "${agent_pid[$out]}" # it would come by itself in some minutes
    wait_for 30 "the agent of $out" is_ready "${agent_admin[$out]}" || not_right "$out does not come back"
    shown '^node-000 +Ready' get nodes --context "$out"
}

is_over() { ! kill -0 "$1" 2>/dev/null; }

fleet_lacks() { ! k get pods --all-namespaces --context fleet --no-headers 2>/dev/null | grep -q " $1 "; }

fleet_answers() { k get pods --all-namespaces --context fleet >/dev/null 2>&1; }

# count_clusters N ARGUMENT...: how many clusters the rows are from.
count_clusters() {
    local wanted=$1 found
    shift
    found=$(k "$@" --no-headers 2>/dev/null | awk '{ seen[$2] } END { print length(seen) }')
    if [[ $found -eq $wanted ]]; then right; else not_right "kubectl $* shows $found clusters, not $wanted"; fi
}

tour_fleet_watch() {
    local watcher
    title "One watch over all clusters: a pod that is made in ${clusters[1]}"
    show_command get pods --all-namespaces --context fleet -w
    say "(goes on in the background)"
    k get pods --all-namespaces --context fleet -w --output-watch-events >"$dir/watch" 2>&1 &
    watcher=$!
    pids+=("$watcher")
    wait_for 15 "the first line of the watch" watch_shows '^ADDED' ||
        not_right "the watch does not begin"
    shown 'pod/visitor created' run visitor --image=registry.example/visitor:1.0 \
        --context "${clusters[1]}"
    if wait_for 15 "the pod in the watch" watch_shows "^ADDED.* ${clusters[1]} +visitor "; then
        right
    else
        not_right "the watch does not show the pod"
    fi
    shown 'pod "visitor" .*deleted' delete pod visitor --context "${clusters[1]}"
    if wait_for 15 "its end in the watch" watch_shows "^DELETED.* ${clusters[1]} +visitor "; then
        right
    else
        not_right "the watch does not show that the pod is gone"
    fi
    printf '\nwhat the watch printed of it:\n'
    grep -E ' visitor ' "$dir/watch" || true
    stop "$watcher"
}

tour_fleet_away() {
    local away=${clusters[2]}
    title "The agent of $away stops: the list is still whole, and says how old that part is"
    stop "${agent_pid[$away]}"
    wait_for 15 "the warning" fleet_warns || not_right "there is no warning"
    shown "^Warning: .*stale: $away" get pods --all-namespaces --context fleet
    count_clusters 3 get pods --all-namespaces --context fleet
    show_clusters "^$away +away "
    start_agent "$away"
    wait_for 30 "the agent of $away" is_ready "${agent_admin[$away]}" ||
        not_right "the agent of $away does not come back"
    wait_for 15 "the end of the warning" fleet_is_whole || not_right "the warning stays"
}

fleet_warns() { k get pods --all-namespaces --context fleet 2>&1 >/dev/null | grep -q '^Warning'; }
fleet_is_whole() { ! fleet_warns; }

# show_clusters PATTERN: what the operator is shown.
show_clusters() {
    printf '\n$ kuberelayctl clusters\n'
    "$bin/kuberelayctl" clusters --socket "$dir/admin.sock" >"$dir/answer" 2>&1 || true
    cat "$dir/answer"
    verdict 0 "$1" "kuberelayctl clusters"
}

tour_fleet_bytes() {
    local raw received
    title "What it costs: bytes that the API servers sent, and what came over the tunnels"
    show_clusters "^${clusters[0]} +connected "
    raw=$(metric_sum kuberelay_hub_sync_raw_bytes_total)
    received=$(metric_sum kuberelay_hub_sync_received_bytes_total)
    say "" "read by the agents: $raw bytes; sent to the hub: $received bytes"
    if [[ $received -gt 0 && $((received * 2)) -lt $raw ]]; then
        right
    else
        not_right "syncing saves less than half"
    fi
}

# metric_sum NAME: of all its series, from the hub's admin port.
metric_sum() {
    exec 3<>"/dev/tcp/${hub_admin%:*}/${hub_admin##*:}"
    printf 'GET /metrics HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n' >&3
    awk -v name="$1" 'index($1, name "{") == 1 || $1 == name { sum += $2 } END { printf "%d\n", sum }' <&3
    exec 3>&-
}

tour_writes() {
    title "Writing: apply, apply again, server-side apply, patch"
    write_manifests
    printf '\n$ cat shop.yaml\n'
    cat "$dir/shop.yaml"
    cd "$dir" || exit # so that the commands read as one would type them
    shown 'deployment.apps/shop created' apply -f shop.yaml
    shown 'deployment.apps/shop unchanged' apply -f shop.yaml
    sed -i 's/shop:1.0/shop:1.1/' "$dir/shop.yaml"
    shown 'deployment.apps/shop configured' apply -f shop.yaml
    shown '^registry.example/shop:1.1$' get deployment shop \
        -o 'jsonpath={.spec.template.spec.containers[0].image}{"\n"}'
    shown 'configmap/settings serverside-applied' apply --server-side -f settings.yaml
    shown 'configmap/settings patched' patch configmap settings -p '{"data":{"colour":"blue"}}'
    shown '^blue$' get configmap settings -o 'jsonpath={.data.colour}{"\n"}'
}

write_manifests() {
    cat >"$dir/shop.yaml" <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  labels: {app: shop}
spec:
  replicas: 2
  selector:
    matchLabels: {app: shop}
  template:
    metadata:
      labels: {app: shop}
    spec:
      containers:
      - name: shop
        image: registry.example/shop:1.0
        ports:
        - containerPort: 8080
YAML
    cat >"$dir/settings.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  colour: green
  size: large
YAML
}

watch_shows() { grep -Eq -- "$1" "$dir/watch"; }

tour_watch() {
    local watcher
    title "Watching while something changes"
    show_command get deployment shop -w
    say "(goes on in the background)"
    k get deployment shop -w >"$dir/watch" 2>&1 &
    watcher=$!
    pids+=("$watcher")
    wait_for 15 "the first line of the watch" watch_shows '^shop +0/2' ||
        not_right "the watch does not begin"
    shown 'deployment.apps/shop scaled' scale deployment shop --replicas=4
    if wait_for 15 "the change in the watch" watch_shows '^shop +0/4'; then
        right
    else
        not_right "the watch does not show the change"
    fi
    printf '\nwhat the watch printed:\n'
    cat "$dir/watch"
    stop "$watcher"
}

tour_logs() {
    local pod
    title "Logs"
    pod=$(k get pods -l app=web -o 'jsonpath={.items[0].metadata.name}' 2>/dev/null || true)
    shown "pod=$pod" logs "$pod" --tail=3
}

tour_deletes() {
    title "Deleting"
    shown 'deployment.apps "shop" deleted' delete -f shop.yaml
    absent get deployment shop
}

# With someone's own cluster: only what reads.
tour_of_yours() {
    title "Reading your cluster through the relay (nothing is written to it)"
    cat <<TEXT
The agent acts with the credentials of $user_kubeconfig${user_context:+ (context $user_context)} and
impersonates the user that asks: here kuberelay:demo. So
  - those credentials need the right to impersonate users (a cluster administrator's have it), and
  - kuberelay:demo needs rights of its own. To let it read, an administrator runs, on the cluster:
      kubectl create clusterrolebinding kuberelay-demo --clusterrole=view --user=kuberelay:demo
Without the first, answers say that impersonating is forbidden; without the second, that
kuberelay:demo may not list something.
TEXT
    shown 'Server Version|GitVersion' version
    shown '.' api-resources
    shown '.' auth can-i --list
    show_command get pods --all-namespaces
    if k get pods --all-namespaces >"$dir/answer" 2>&1; then
        show_answer
        right
    else
        show_answer
        not_right "reading pods failed: see above for the rights that it needs"
    fi
}

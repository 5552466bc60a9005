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
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    unset 'pids[-1]'
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

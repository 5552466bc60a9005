// SPDX-License-Identifier: Apache-2.0

// Command multicluster-controller is an example of a controller for all clusters behind a kuberelay
// hub, on multicluster-runtime: it reads every cluster through one list and watch of the fleet view
// (/clusters/*), and writes to each through its own path (/clusters/NAME).
//
// It copies what a ConfigMap labelled follow=yes has under "k" into an annotation.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

const seen = "example.test/seen"

type follower struct{ mcmanager.Manager }

func (f follower) Reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	cluster, err := f.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return ctrl.Result{}, nil // it has left meanwhile
	}
	var m corev1.ConfigMap
	if err := cluster.GetClient().Get(ctx, request.NamespacedName, &m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if m.Labels["follow"] != "yes" || m.Annotations[seen] == m.Data["k"] {
		return ctrl.Result{}, nil
	}
	m.Annotations[seen] = m.Data["k"]
	// An Update, not a Patch: the hub knows what it has served, and stale means conflict.
	err = cluster.GetClient().Update(ctx, &m)
	fmt.Printf("event=reconciled cluster=%s name=%s/%s k=%q error=%v\n",
		request.ClusterName, m.Namespace, m.Name, m.Data["k"], err)
	return ctrl.Result{}, err
}

func run(ctx context.Context, hub *rest.Config) error {
	provider, err := newProvider(hub)
	if err != nil {
		return err
	}
	// The manager's own ("local") cluster is the fleet's address; nothing is read through it.
	manager, err := mcmanager.New(at(hub, "*"), provider, mcmanager.Options{
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = mcbuilder.ControllerManagedBy(manager).Named("follower").For(&corev1.ConfigMap{}).
		Complete(follower{manager})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

func main() {
	ctrl.SetLogger(zap.New())
	flag.Parse() // controller-runtime brings -kubeconfig: a hub's, without a path
	hub, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), hub)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

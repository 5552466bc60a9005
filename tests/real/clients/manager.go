// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const seen = "example.test/seen"

// follower writes what it saw in a ConfigMap labelled follow=yes into an annotation of it.
type follower struct{ client.Client }

func (f follower) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var m v1.ConfigMap
	if err := f.Get(ctx, request.NamespacedName, &m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if m.Labels["follow"] != "yes" || m.Annotations[seen] == m.Data["k"] {
		return ctrl.Result{}, nil
	}
	before := m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[seen] = m.Data["k"]
	err := f.Patch(ctx, &m, client.MergeFrom(before))
	fmt.Printf("event=reconciled name=%s k=%q error=%v\n", m.Name, m.Data["k"], err)
	return ctrl.Result{}, err
}

func runManager(ctx context.Context, config *rest.Config, namespace string) error {
	log.SetLogger(zap.New())
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&v1.ConfigMap{}).
		Complete(follower{manager.GetClient()})
	if err != nil {
		return err
	}
	go func() {
		if manager.GetCache().WaitForCacheSync(ctx) {
			fmt.Println("event=synced")
		}
	}()
	return manager.Start(ctx)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// provider tells multicluster-runtime of the clusters behind a hub. All of them share one cache,
// which reads the fleet view; each has a client of its own, which writes to its cluster.
type provider struct {
	clusters.Clusters[cluster.Cluster]
	hub   *rest.Config
	fleet cluster.Cluster
}

func newProvider(hub *rest.Config) (*provider, error) {
	fleet, err := cluster.New(at(hub, "*"), func(o *cluster.Options) {
		o.Cache.NewInformer = func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(qualified{lw}, obj, resync, indexers)
		}
	})
	return &provider{Clusters: clusters.New[cluster.Cluster](), hub: hub, fleet: fleet}, err
}

// Start runs the shared cache. Every cluster has a Namespace kube-system: it comes and goes with it.
func (p *provider) Start(ctx context.Context, aware multicluster.Aware) error {
	namespaces, err := p.namespaces(ctx)
	if err != nil {
		return err
	}
	_, err = namespaces.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if name, ok := joined(obj); ok {
				p.join(ctx, name, aware)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if name, ok := joined(obj); ok {
				p.Remove(name)
				fmt.Printf("event=left cluster=%s\n", name)
			}
		},
	})
	if err != nil {
		return err
	}
	return p.fleet.Start(ctx)
}

// namespaces waits for a hub that has just started: it refuses until its agents may be back.
func (p *provider) namespaces(ctx context.Context) (informer cache.Informer, err error) {
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		var refused error
		informer, refused = p.fleet.GetCache().GetInformer(ctx, &corev1.Namespace{}, cache.BlockUntilSynced(false))
		if refused != nil {
			log.FromContext(ctx).Info("the hub is not ready", "reason", refused.Error())
		}
		return refused == nil, nil
	})
	return informer, err
}

func joined(obj any) (string, bool) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return "", false
	}
	ns = ns.DeepCopy()
	name := unqualify(ns)
	return name, ns.Name == "kube-system"
}

func (p *provider) join(ctx context.Context, name string, aware multicluster.Aware) {
	one, err := cluster.New(at(p.hub, name), func(o *cluster.Options) {
		o.NewCache = func(*rest.Config, cache.Options) (cache.Cache, error) {
			return scopedCache{p.fleet.GetCache(), name}, nil
		}
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return p.fleet.GetRESTMapper(), nil
		}
	})
	if err == nil {
		err = p.Add(ctx, name, one, aware)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "cluster is left out", "cluster", name)
		return
	}
	fmt.Printf("event=joined cluster=%s\n", name)
}

// IndexField indexes the shared cache, once for all clusters.
func (p *provider) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	return p.fleet.GetFieldIndexer().IndexField(ctx, obj, field, extract)
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterLabel is put on every object by the fleet view.
const clusterLabel = "kuberelay.io/cluster"

// scopedCache is what one cluster has of the cache of all of them.
type scopedCache struct {
	cache.Cache // the fleet's, with qualified objects
	cluster     string
}

func (c scopedCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if key.Namespace != "" {
		key.Namespace = c.cluster + "|" + key.Namespace
	} else {
		key.Name = c.cluster + "|" + key.Name
	}
	if err := c.Cache.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	unqualify(obj)
	return nil
}

func (c scopedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var all client.ListOptions
	all.ApplyOptions(opts)
	if all.Namespace != "" {
		opts = append(opts, client.InNamespace(c.cluster+"|"+all.Namespace))
	} else {
		opts = append(opts, client.MatchingLabels{clusterLabel: c.cluster})
	}
	if err := c.Cache.List(ctx, list, opts...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(obj runtime.Object) error {
		unqualify(obj.(client.Object))
		return nil
	})
}

func (c scopedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, obj, opts...)
	return scopedInformer{informer, c.cluster}, err
}

func (c scopedCache) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformerForKind(ctx, kind, opts...)
	return scopedInformer{informer, c.cluster}, err
}

func (c scopedCache) RemoveInformer(context.Context, client.Object) error {
	return errors.New("the informers belong to all clusters")
}

// Start has nothing to do: the fleet's cache runs for all clusters.
func (c scopedCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// scopedInformer passes on the events of one cluster.
type scopedInformer struct {
	cache.Informer
	cluster string
}

func (i scopedInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandler(i.scope(h))
}

func (i scopedInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithResyncPeriod(i.scope(h), period)
}

func (i scopedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithOptions(i.scope(h), options)
}

func (i scopedInformer) scope(h toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if mine, ok := i.own(obj); ok {
				h.OnAdd(mine, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			old, _ := i.own(before)
			if mine, ok := i.own(after); ok {
				h.OnUpdate(old, mine)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if mine, ok := i.own(obj); ok {
				h.OnDelete(mine)
			}
		},
	}
}

// own is a copy of the object under its own name, if it is of this cluster.
func (i scopedInformer) own(obj any) (client.Object, bool) {
	o, ok := obj.(client.Object)
	if !ok || o.GetLabels()[clusterLabel] != i.cluster {
		return nil, false
	}
	o = o.DeepCopyObject().(client.Object)
	unqualify(o)
	return o, true
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// fleetInformer is a shared informer of client-go on the ConfigMaps of all clusters.
func fleetInformer(config *rest.Config, namespace string) (cache.SharedIndexInformer, error) {
	client, err := dynamic.NewForConfig(at(config, "*"))
	if err != nil {
		return nil, err
	}
	maps := client.Resource(configMaps).Namespace(namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, o)
		},
	}
	return cache.NewSharedIndexInformer(qualified{lw}, &unstructured.Unstructured{}, 0,
		cache.Indexers{}), nil
}

func showFleet(event string, obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		event, obj = "lost", last.Obj
	}
	if m, ok := obj.(*unstructured.Unstructured); ok {
		key, _ := cache.MetaNamespaceKeyFunc(m)
		k, _, _ := unstructured.NestedString(m.Object, "data", "k")
		fmt.Printf("event=%s key=%s k=%q stale=%q\n", event, key, k,
			m.GetAnnotations()["kuberelay.io/stale-since"])
	}
}

func startFleet(ctx context.Context, config *rest.Config, namespace string) (cache.SharedIndexInformer, error) {
	informer, err := fleetInformer(config, namespace)
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { showFleet("add", obj) },
		UpdateFunc: func(_, obj any) { showFleet("update", obj) },
		DeleteFunc: func(obj any) { showFleet("delete", obj) },
	})
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, errors.New("not synced")
	}
	fmt.Printf("event=synced objects=%d\n", len(informer.GetStore().ListKeys()))
	return informer, nil
}

func runFleet(ctx context.Context, config *rest.Config, namespace string) error {
	_, err := startFleet(ctx, config, namespace)
	if err == nil {
		<-ctx.Done()
	}
	return err
}

const increments = 10

// runCounters adds to data.n of each ConfigMap labelled count=yes: what was read from the fleet view
// is written to the cluster, and read again when that was stale.
func runCounters(ctx context.Context, config *rest.Config, namespace string) error {
	informer, err := startFleet(ctx, config, namespace)
	if err != nil {
		return err
	}
	for _, key := range informer.GetStore().ListKeys() {
		obj, _, _ := informer.GetStore().GetByKey(key)
		if m, ok := obj.(*unstructured.Unstructured); !ok || m.GetLabels()["count"] != "yes" {
			continue
		}
		conflicts := 0
		for range increments {
			if err := increment(ctx, config, informer.GetStore(), key, &conflicts); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		fmt.Printf("event=counted key=%s conflicts=%d\n", key, conflicts)
	}
	fmt.Println("event=done")
	<-ctx.Done()
	return nil
}

func increment(ctx context.Context, config *rest.Config, store cache.Store, key string, conflicts *int) error {
	return retry.RetryOnConflict(patience, func() error {
		obj, found, err := store.GetByKey(key)
		if err != nil || !found {
			return fmt.Errorf("gone from the store: %w", err)
		}
		m := obj.(*unstructured.Unstructured).DeepCopy()
		client, err := dynamic.NewForConfig(at(config, unqualify(m)))
		if err != nil {
			return err
		}
		text, _, _ := unstructured.NestedString(m.Object, "data", "n")
		n, _ := strconv.Atoi(text)
		if err := unstructured.SetNestedField(m.Object, strconv.Itoa(n+1), "data", "n"); err != nil {
			return err
		}
		_, err = client.Resource(configMaps).Namespace(m.GetNamespace()).
			Update(ctx, m, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			*conflicts++
		}
		return err
	})
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func runInformer(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	show := func(event string, obj any) {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			event, obj = "lost", last.Obj
		}
		if m, ok := obj.(*v1.ConfigMap); ok {
			fmt.Printf("event=%s name=%s k=%q\n", event, m.Name, m.Data["k"])
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { show("add", obj) },
		UpdateFunc: func(_, obj any) { show("update", obj) },
		DeleteFunc: func(obj any) { show("delete", obj) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("not synced")
	}
	fmt.Println("event=synced")
	<-ctx.Done()
	return nil
}

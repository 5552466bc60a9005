// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// clusterAnnotation is where the fleet view says which cluster an object comes from.
const clusterAnnotation = "kcp.io/cluster"

// In the fleet view two objects may have the same namespace and name. client-go's stores have one
// key function, "namespace/name", and no way to give another to a reflector that streams its list.
// So objects get their cluster as they arrive: the key becomes "cluster|namespace/name", or
// "cluster|name" for what has no namespace. Everything of client-go works unchanged with that.

// qualified is a ListerWatcher of the fleet view.
type qualified struct{ cache.ListerWatcher }

func (q qualified) List(options metav1.ListOptions) (runtime.Object, error) {
	list, err := q.ListerWatcher.List(options)
	if err != nil {
		return nil, err
	}
	return list, meta.EachListItem(list, qualify)
}

func (q qualified) Watch(options metav1.ListOptions) (watch.Interface, error) {
	w, err := q.ListerWatcher.Watch(options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(in watch.Event) (watch.Event, bool) {
		if in.Type != watch.Bookmark && in.Type != watch.Error {
			_ = qualify(in.Object)
		}
		return in, true
	}), nil
}

func qualify(obj runtime.Object) error {
	o, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	cluster := o.GetAnnotations()[clusterAnnotation]
	if o.GetNamespace() != "" {
		o.SetNamespace(cluster + "|" + o.GetNamespace())
	} else {
		o.SetName(cluster + "|" + o.GetName())
	}
	return nil
}

// unqualify gives an object (a copy of what a store holds) its own name back, and tells its cluster.
func unqualify(o metav1.Object) string {
	cluster, rest, found := strings.Cut(o.GetNamespace(), "|")
	if found {
		o.SetNamespace(rest)
		return cluster
	}
	cluster, rest, found = strings.Cut(o.GetName(), "|")
	if found {
		o.SetName(rest)
		return cluster
	}
	return o.GetAnnotations()[clusterAnnotation]
}

// at is the configuration of a hub, for one cluster or, with "*", for all of them. JSON, because a
// profile may leave parts of objects out, and in protobuf the hub refuses to put such a one (415).
func at(hub *rest.Config, cluster string) *rest.Config {
	c := rest.CopyConfig(hub)
	c.ContentType = runtime.ContentTypeJSON
	c.Host = strings.TrimSuffix(c.Host, "/") + "/clusters/" + cluster
	return c
}

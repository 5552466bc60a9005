// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// typedClient speaks protobuf for what it sends, as controller-runtime's clients do for the kinds
// that are built in, and takes what it gets.
func typedClient(config *rest.Config, cluster string) (*kubernetes.Clientset, error) {
	c := at(config, cluster)
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return kubernetes.NewForConfig(c)
}

// runTyped adds to data.n of each ConfigMap labelled count=yes, as it reads it from the fleet view;
// then it creates a copy, and deletes that under the version that the fleet view shows.
func runTyped(ctx context.Context, config *rest.Config, namespace string) error {
	all, err := typedClient(config, "*")
	if err != nil {
		return err
	}
	found, err := all.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: "count=yes"})
	if err != nil {
		return err
	}
	for i := range found.Items {
		m := &found.Items[i]
		t := typed{all: all, namespace: namespace, name: m.Name, cluster: m.Annotations[clusterAnnotation]}
		if t.one, err = typedClient(config, t.cluster); err != nil {
			return err
		}
		if err := t.run(ctx); err != nil {
			return fmt.Errorf("%s/%s: %w", t.cluster, t.name, err)
		}
		fmt.Printf("event=counted cluster=%s name=%s conflicts=%d\n", t.cluster, t.name, t.conflicts)
	}
	fmt.Println("event=done")
	<-ctx.Done()
	return nil
}

type typed struct {
	all, one                 *kubernetes.Clientset
	namespace, name, cluster string
	conflicts                int
}

var patience = wait.Backoff{Steps: 1000, Duration: 10 * time.Millisecond, Factor: 1, Jitter: 0.5}

func (t *typed) run(ctx context.Context) error {
	for range increments {
		if err := retry.RetryOnConflict(patience, func() error { return t.increment(ctx) }); err != nil {
			return fmt.Errorf("increment: %w", err)
		}
	}
	return t.copyAndDelete(ctx)
}

// read gets an object as the fleet view shows it.
func (t *typed) read(ctx context.Context, name string) (*v1.ConfigMap, error) {
	list, err := t.all.CoreV1().ConfigMaps(t.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + name, LabelSelector: "kuberelay.io/cluster=" + t.cluster})
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, apierrors.NewNotFound(v1.Resource("configmaps"), name)
	}
	return &list.Items[0], nil
}

func (t *typed) increment(ctx context.Context) error {
	m, err := t.read(ctx, t.name)
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(m.Data["n"])
	m.Data["n"] = strconv.Itoa(n + 1)
	_, err = t.one.CoreV1().ConfigMaps(t.namespace).Update(ctx, m, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		t.conflicts++
	}
	return err
}

func (t *typed) copyAndDelete(ctx context.Context) error {
	maps := t.one.CoreV1().ConfigMaps(t.namespace)
	m, err := t.read(ctx, t.name)
	if err != nil {
		return err
	}
	m.Name, m.ResourceVersion, m.UID = fmt.Sprintf("%s-copy-%d", t.name, os.Getpid()), "", ""
	delete(m.Labels, "count")
	made, err := maps.Create(ctx, m, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if made.Labels["kuberelay.io/cluster"] != "" || made.Annotations[clusterAnnotation] != "" {
		return fmt.Errorf("the copy has what the fleet view adds: %v %v", made.Labels, made.Annotations)
	}
	var seen *v1.ConfigMap
	err = retry.OnError(patience, apierrors.IsNotFound, func() (err error) {
		seen, err = t.read(ctx, m.Name)
		return err
	})
	if err != nil {
		return fmt.Errorf("the copy in the fleet view: %w", err)
	}
	if seen.ResourceVersion == made.ResourceVersion {
		return errors.New("the fleet view shows the version of the cluster")
	}
	err = maps.Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &seen.UID, ResourceVersion: &seen.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	fmt.Printf("event=deleted cluster=%s name=%s\n", t.cluster, m.Name)
	return nil
}

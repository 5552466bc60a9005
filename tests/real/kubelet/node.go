// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// The API server finds a kubelet through its node's address and port.
func register(ctx context.Context, client kubernetes.Interface, name string, port int32) error {
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &v1.Node{ObjectMeta: meta.ObjectMeta{Name: name}},
		meta.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		node, err = nodes.Get(ctx, name, meta.GetOptions{})
	}
	if err != nil {
		return err
	}
	node.Status = v1.NodeStatus{
		Addresses:       []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: port}},
		Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue,
			Reason: "KubeletReady", LastTransitionTime: meta.Now(), LastHeartbeatTime: meta.Now()}},
		NodeInfo: v1.NodeSystemInfo{KubeletVersion: "v1.33.13"},
	}
	_, err = nodes.UpdateStatus(ctx, node, meta.UpdateOptions{})
	return err
}

// keepPods makes a folder for each pod of the node, says that it runs, and lets it go.
func keepPods(ctx context.Context, client kubernetes.Interface, node string, host *host) {
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", meta.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", node))
	keep := func(obj any) {
		if err := keepPod(ctx, client, host, obj.(*v1.Pod)); err != nil && !errors.IsConflict(err) &&
			!errors.IsNotFound(err) {
			log.Printf("event=pod-failed error=%q", err)
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &v1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    keep,
			UpdateFunc: func(_, obj any) { keep(obj) },
			DeleteFunc: func(obj any) {
				if pod, ok := obj.(*v1.Pod); ok {
					host.remove(pod.Namespace, pod.Name)
				}
			},
		},
	})
	controller.RunWithContext(ctx)
}

func keepPod(ctx context.Context, client kubernetes.Interface, host *host, pod *v1.Pod) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	if pod.DeletionTimestamp != nil {
		host.remove(pod.Namespace, pod.Name)
		now := int64(0)
		return pods.Delete(ctx, pod.Name, meta.DeleteOptions{GracePeriodSeconds: &now})
	}
	if pod.Status.Phase == v1.PodRunning {
		return nil
	}
	if err := host.add(pod.Namespace, pod.Name); err != nil {
		return err
	}
	running := pod.DeepCopy()
	now := meta.NewTime(time.Now())
	running.Status = v1.PodStatus{Phase: v1.PodRunning, HostIP: "127.0.0.1", PodIP: "127.0.0.1",
		StartTime: &now}
	for _, kind := range []v1.PodConditionType{v1.PodScheduled, v1.PodInitialized, v1.ContainersReady,
		v1.PodReady} {
		running.Status.Conditions = append(running.Status.Conditions,
			v1.PodCondition{Type: kind, Status: v1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		running.Status.ContainerStatuses = append(running.Status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true,
			ContainerID: "fake://" + string(pod.UID) + "/" + c.Name,
			State:       v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
		})
	}
	_, err := pods.UpdateStatus(ctx, running, meta.UpdateOptions{})
	return err
}

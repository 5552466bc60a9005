// SPDX-License-Identifier: Apache-2.0

// Command clients is what people run against a cluster (informer of client-go, manager of
// controller-runtime) and against all clusters of a hub (fleet, counters, typed). All print each request, so
// that a test can see whether they listed again.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	// Not the common flags: controller-runtime has put a -kubeconfig of its own there.
	flags := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the cluster")
	namespace := flags.String("namespace", "default", "whose ConfigMaps are watched")
	_ = flags.Parse(os.Args[1:])
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return spy{next} })
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	run := map[string]func(context.Context, *rest.Config, string) error{
		"informer": runInformer, "manager": runManager, "fleet": runFleet,
		"counters": runCounters, "typed": runTyped}[flags.Arg(0)]
	if run == nil {
		fmt.Fprintln(os.Stderr, "usage: clients [--kubeconfig FILE] [--namespace NAME] informer|manager|fleet|counters|typed")
		os.Exit(2)
	}
	if err := run(ctx, config, *namespace); err != nil {
		log.Fatal(err)
	}
}

// spy prints what was asked and the status of the answer.
type spy struct{ next http.RoundTripper }

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	status := 0
	if err == nil {
		status = answer.StatusCode
	}
	query := r.URL.Query()
	kind := "other"
	switch {
	case r.Method == http.MethodGet && query.Get("sendInitialEvents") == "true":
		kind = "list" // as a stream
	case query.Get("watch") == "true":
		kind = "watch"
	case r.Method == http.MethodGet && (query.Has("limit") || query.Has("resourceVersion")):
		kind = "list"
	}
	fmt.Printf("event=request kind=%s method=%s status=%d path=%s\n", kind, r.Method, status, r.URL.Path)
	return answer, err
}

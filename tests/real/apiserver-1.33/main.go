// SPDX-License-Identifier: Apache-2.0

// Command kube-apiserver is the upstream API server, unchanged: the end-to-end
// tests compare what a client sees through kuberelay with what it answers.
package main

import (
	"os"
	_ "time/tzdata" // as upstream: some objects carry time zone names

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}

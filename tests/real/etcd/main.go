// SPDX-License-Identifier: Apache-2.0

// Command etcd is the upstream server, unchanged: it stores what the real
// kube-apiserver of the end-to-end tests serves.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}

// SPDX-License-Identifier: Apache-2.0

// Command kubelet is a stand-in for a node: it registers a Node, calls the pods bound to it
// running, and serves their logs, exec, attach and port-forward over TLS as a kubelet does.
// There are no containers: a pod is a folder, and exec runs one of a few programs in it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flag.StringVar(&o.node, "node", "node-1", "name of the node")
	flag.StringVar(&o.folder, "folder", "", "where the pods' folders are made")
	flag.StringVar(&o.cert, "cert", "", "serving certificate")
	flag.StringVar(&o.key, "key", "", "its key")
	flag.StringVar(&o.clientCA, "client-ca", "", "CA of the API server's client certificate")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, &o); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	kubeconfig, node, folder, cert, key, clientCA string
}

func run(ctx context.Context, o *options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	listener, err := listen(o)
	if err != nil {
		return err
	}
	host, err := newHost(o.folder)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newHandler(host), ErrorLog: log.Default()}
	go func() { _ = server.Serve(listener) }()
	port := listener.Addr().(*net.TCPAddr).Port
	if err := register(ctx, client, o.node, int32(port)); err != nil {
		return err
	}
	fmt.Printf("event=ready node=%s port=%d\n", o.node, port)
	keepPods(ctx, client, o.node, host)
	return server.Close()
}

// Only the API server may talk to a kubelet: its certificate is asked for.
func listen(o *options) (net.Listener, error) {
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(o.clientCA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		NextProtos:   []string{"http/1.1"},
	})
}

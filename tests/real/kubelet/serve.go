// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	remotecommandconsts "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/kubelet/pkg/cri/streaming/portforward"
	streaming "k8s.io/kubelet/pkg/cri/streaming/remotecommand"
)

const (
	idle     = 4 * time.Hour
	creation = 30 * time.Second
)

// newHandler has the paths that kube-apiserver asks a kubelet for.
func newHandler(h *host) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", h.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", h.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", h.serveAttach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", h.servePortForward)
	return mux
}

func (h *host) find(w http.ResponseWriter, r *http.Request) (*pod, bool) {
	p := &pod{host: h, namespace: r.PathValue("namespace"), name: r.PathValue("pod")}
	if h.ended(p.namespace, p.name) == nil {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return nil, false
	}
	return p, true
}

// pod is one target of a streaming request: it executes, attaches and forwards.
type pod struct {
	host            *host
	namespace, name string
}

func (h *host) serveExec(w http.ResponseWriter, r *http.Request) {
	p, ok := h.find(w, r)
	if !ok {
		return
	}
	opts, err := streaming.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	streaming.ServeExec(w, r, p, p.name, "", r.PathValue("container"), r.URL.Query()["command"], opts,
		idle, creation, remotecommandconsts.SupportedStreamingProtocols)
}

func (h *host) serveAttach(w http.ResponseWriter, r *http.Request) {
	p, ok := h.find(w, r)
	if !ok {
		return
	}
	opts, err := streaming.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	streaming.ServeAttach(w, r, p, p.name, "", r.PathValue("container"), opts, idle, creation,
		remotecommandconsts.SupportedStreamingProtocols)
}

func (h *host) servePortForward(w http.ResponseWriter, r *http.Request) {
	p, ok := h.find(w, r)
	if !ok {
		return
	}
	opts, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, p, p.name, "", opts, idle, creation,
		portforward.SupportedProtocols)
}

// AttachContainer echoes what it gets, or shows what the pod says from now on.
func (p *pod) AttachContainer(ctx context.Context, _ string, _ types.UID, _ string, in io.Reader,
	out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	if in != nil {
		_, err := io.Copy(out, in)
		return err
	}
	return p.follow(ctx, out, time.Now(), false, -1)
}

// PortForward copies both ways; each way ends by itself, as with containerd.
func (p *pod) PortForward(ctx context.Context, _ string, _ types.UID, port int32,
	stream io.ReadWriteCloser) error {
	defer stream.Close()
	address := p.host.ports[port]
	if address == "" {
		return fmt.Errorf("dial tcp4 127.0.0.1:%d: connect: connection refused", port)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	return err
}

func (h *host) serveLogs(w http.ResponseWriter, r *http.Request) {
	p, ok := h.find(w, r)
	if !ok {
		return
	}
	query := r.URL.Query()
	tail, since := -1, time.Time{}
	if n, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		tail = n
	}
	if n, err := strconv.Atoi(query.Get("sinceSeconds")); err == nil {
		since = time.Now().Add(-time.Duration(n) * time.Second)
	}
	if at, err := time.Parse(time.RFC3339, query.Get("sinceTime")); err == nil {
		since = at
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	stamps := query.Get("timestamps") == "true"
	if query.Get("follow") != "true" {
		_ = p.print(w, since, stamps, tail)
		return
	}
	_ = p.follow(r.Context(), flushWriter{w}, since, stamps, tail)
}

// flushWriter sends each line at once.
type flushWriter struct{ w http.ResponseWriter }

func (f flushWriter) Write(data []byte) (int, error) {
	n, err := f.w.Write(data)
	f.w.(http.Flusher).Flush()
	return n, err
}

func (p *pod) print(w io.Writer, since time.Time, stamps bool, tail int) error {
	_, err := p.printFrom(w, 0, since, stamps, tail)
	return err
}

// printFrom writes the log's whole lines from an offset on; it returns where they ended.
func (p *pod) printFrom(w io.Writer, from int64, since time.Time, stamps bool, tail int) (int64, error) {
	file, err := os.Open(p.host.logPath(p.namespace, p.name))
	if err != nil {
		return from, err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	var lines []string
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return from, err
		}
		from += int64(len(line))
		stamp, text, _ := strings.Cut(line, " ")
		if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || at.Before(since) {
			continue
		}
		if stamps {
			text = line
		}
		lines = append(lines, text)
	}
	if tail >= 0 && len(lines) > tail {
		lines = lines[len(lines)-tail:]
	}
	for _, line := range lines {
		if _, err := io.WriteString(w, line); err != nil {
			return from, err
		}
	}
	return from, nil
}

// follow ends with the pod or with the client.
func (p *pod) follow(ctx context.Context, w io.Writer, since time.Time, stamps bool, tail int) error {
	ended := p.host.ended(p.namespace, p.name)
	at, err := p.printFrom(w, 0, since, stamps, tail)
	if f, ok := w.(flushWriter); ok {
		f.w.(http.Flusher).Flush()
	}
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			_, err = p.printFrom(w, at, since, stamps, -1)
			return err
		case <-time.After(20 * time.Millisecond):
			at, err = p.printFrom(w, at, since, stamps, -1)
		}
	}
	return err
}

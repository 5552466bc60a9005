// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// host holds the pods: a folder for each, and the log of its only process beside it.
type host struct {
	folder string
	mu     sync.Mutex
	gone   map[string]chan struct{} // closed when the pod ends, by namespace/name
	ports  map[int32]string         // what listens in every pod, and where it really does
}

func newHost(folder string) (*host, error) {
	h := &host{folder: folder, gone: map[string]chan struct{}{}, ports: map[int32]string{}}
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = http.Serve(web, http.HandlerFunc(answer)) }()
	ruok, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go serveRuok(ruok)
	h.ports[80], h.ports[2181] = web.Addr().String(), ruok.Addr().String()
	return h, nil
}

// Port 80: a page whose size is the number in the path.
func answer(w http.ResponseWriter, r *http.Request) {
	var size int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d", &size)
	w.Header().Set("Content-Type", "application/octet-stream")
	line := []byte(strings.Repeat("0123456789abcde\n", 1024))
	for ; size > 0; size -= len(line) {
		if _, err := w.Write(line[:min(size, len(line))]); err != nil {
			return
		}
	}
}

// Port 2181: says something only after the client has closed its half.
func serveRuok(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			all, _ := bufio.NewReader(conn).ReadString(0)
			fmt.Fprintf(conn, "imok %q", all)
		}()
	}
}

func (h *host) path(namespace, name string) string {
	return filepath.Join(h.folder, namespace, name)
}

func (h *host) logPath(namespace, name string) string { return h.path(namespace, name) + ".log" }

const oldLines = 100

func (h *host) add(namespace, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := namespace + "/" + name
	if h.gone[key] != nil {
		return nil
	}
	if err := os.MkdirAll(h.path(namespace, name), 0o755); err != nil {
		return err
	}
	// A past: one line each ten minutes, the last of them ten minutes old.
	var past strings.Builder
	for i := range oldLines {
		at := time.Now().Add(time.Duration(i-oldLines) * 10 * time.Minute)
		past.WriteString(logLine(at, fmt.Sprintf("%s old line %d", name, i)))
	}
	h.gone[key] = make(chan struct{})
	return os.WriteFile(h.logPath(namespace, name), []byte(past.String()), 0o644)
}

func (h *host) remove(namespace, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := namespace + "/" + name
	if gone := h.gone[key]; gone != nil {
		close(gone)
		delete(h.gone, key)
	}
}

// ended is nil for a pod that is not here.
func (h *host) ended(namespace, name string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone[namespace+"/"+name]
}

func logLine(at time.Time, text string) string {
	return at.UTC().Format("2006-01-02T15:04:05.000000000Z07:00") + " " + text + "\n"
}

// say appends to the log of a pod, as its process would.
func (h *host) say(namespace, name, text string) error {
	file, err := os.OpenFile(h.logPath(namespace, name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(logLine(time.Now(), text))
	return err
}

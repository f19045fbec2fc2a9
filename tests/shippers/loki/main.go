// Loki's own code on both sides of the push API: a client that sends lines, and a server that decodes requests.
//
//	loki push URL TENANT COUNT    sends "line 0" and so on, in two streams, and waits for all of them
//	loki serve                    prints its address, and then each entry that it is sent as a line of JSON
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/golang/snappy"
	"github.com/grafana/loki-client-go/loki"
	"github.com/grafana/loki/pkg/push"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	switch os.Args[1] {
	case "push":
		send(os.Args[2], os.Args[3], os.Args[4])
	case "serve":
		serve()
	}
}

func send(url, tenant, number string) {
	count, err := strconv.Atoi(number)
	check(err)
	config, err := loki.NewDefaultConfig(url)
	check(err)
	config.TenantID = tenant
	config.BatchWait = 50 * time.Millisecond
	client, err := loki.New(config)
	check(err)
	start := time.Now()
	for n := range count {
		labels := model.LabelSet{"service_name": "go", "path": model.LabelValue(fmt.Sprintf("\"%d\"\n", n%2))}
		check(client.Handle(labels, start.Add(time.Duration(n)), fmt.Sprintf("line %d", n)))
	}
	client.Stop()
}

type entry struct {
	Labels   map[string]string `json:"labels"`
	Time     int64             `json:"time"`
	Line     string            `json:"line"`
	Metadata map[string]string `json:"metadata"`
	Tenant   string            `json:"tenant"`
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr())
	var lock sync.Mutex
	http.HandleFunc("/loki/api/v1/push", func(w http.ResponseWriter, r *http.Request) {
		entries, err := decode(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		lock.Lock()
		defer lock.Unlock()
		out := json.NewEncoder(os.Stdout)
		for _, e := range entries {
			check(out.Encode(e))
		}
		w.WriteHeader(http.StatusNoContent)
	})
	check(http.Serve(listener, nil))
}

func decode(r *http.Request) ([]entry, error) {
	compressed, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	raw, err := snappy.Decode(nil, compressed)
	if err != nil {
		return nil, err
	}
	var request push.PushRequest
	if err := request.Unmarshal(raw); err != nil {
		return nil, err
	}
	var entries []entry
	for _, stream := range request.Streams {
		labels, err := parser.ParseMetric(stream.Labels)
		if err != nil {
			return nil, fmt.Errorf("couldn't parse labels: %w", err)
		}
		for _, e := range stream.Entries {
			metadata := map[string]string{}
			for _, pair := range e.StructuredMetadata {
				metadata[pair.Name] = pair.Value
			}
			entries = append(entries, entry{labels.Map(), e.Timestamp.UnixNano(), e.Line, metadata, r.Header.Get("X-Scope-OrgID")})
		}
	}
	return entries, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Sends numbered documents with the BulkIndexer of Elasticsearch's client for Go, which is told to send again what is
// refused for now.
//
// Usage: go URL INDEX COUNT own|made
//
// With `own` each document has an `_id` of its own and bodies are compressed, with `made` it has none. Says
// on standard error when it sends again for the first time; prints the version and how many requests there were.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esutil"
)

func main() {
	url, index, own := os.Args[1], os.Args[2], os.Args[4] == "own"
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	var once sync.Once
	client, err := elasticsearch.NewClient(elasticsearch.Config{
		Addresses:           []string{url},
		CompressRequestBody: own,
		RetryOnStatus:       []int{429, 502, 503, 504},
		MaxRetries:          5000,
		RetryBackoff: func(int) time.Duration {
			once.Do(func() { fmt.Fprintln(os.Stderr, "again") })
			return 100 * time.Millisecond
		},
	})
	check(err)
	info, err := client.Info()
	check(err)
	if info.IsError() {
		check(fmt.Errorf("info: %s", info))
	}
	var taken atomic.Int64
	indexer, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{
		Client:     client,
		Index:      index,
		NumWorkers: 2,
		FlushBytes: 16 << 10,
		OnError:    func(_ context.Context, err error) { check(fmt.Errorf("a flush: %w", err)) },
	})
	check(err)
	for number := range count {
		document, err := json.Marshal(map[string]any{
			"@timestamp": 1700000000000 + number, "n": number, "message": fmt.Sprintf("é \"%d\"\n", number),
		})
		check(err)
		item := esutil.BulkIndexerItem{
			Action: "create",
			Body:   strings.NewReader(string(document)),
			OnSuccess: func(context.Context, esutil.BulkIndexerItem, esutil.BulkIndexerResponseItem) {
				taken.Add(1)
			},
			OnFailure: func(_ context.Context, _ esutil.BulkIndexerItem, answer esutil.BulkIndexerResponseItem, err error) {
				check(fmt.Errorf("an item: %v %+v", err, answer))
			},
		}
		if own {
			item.Action, item.DocumentID = "index", fmt.Sprintf("own-%d", number)
		}
		check(indexer.Add(context.Background(), item))
	}
	check(indexer.Close(context.Background()))
	if int(taken.Load()) != count {
		check(fmt.Errorf("%d of %d were taken", taken.Load(), count))
	}
	fmt.Println(elasticsearch.Version, indexer.Stats().NumRequests)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

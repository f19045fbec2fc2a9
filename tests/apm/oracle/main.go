// What APM Server makes of request bodies of its intake: its answer, and the documents that it sends to Elasticsearch,
// as they are indexed behind Elasticsearch's own ingest pipelines.
//
// Reads requests from standard input, one JSON object each, and writes an answer to each in a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"log"
	"net/netip"
	"os"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/elastic/apm-data/input/elasticapm"
	"github.com/elastic/apm-data/model/modeljson"
	"github.com/elastic/apm-data/model/modelpb"
	"github.com/elastic/apm-data/model/modelprocessor"
	"go.elastic.co/fastjson"
)

// A request: its decompressed body, when it came in nanoseconds, and for those of browsers who sent it.
type request struct {
	Body      string `json:"body"`
	Received  uint64 `json:"received"`
	Client    string `json:"client"`
	Port      uint32 `json:"port"`
	UserAgent string `json:"user_agent"`
}

type answer struct {
	Status    int               `json:"status"`
	Accepted  int               `json:"accepted"`
	Errors    []fault           `json:"errors"`
	Documents []json.RawMessage `json:"documents"`
}

type fault struct {
	Message  string `json:"message"`
	Document string `json:"document"`
}

// As many as one likes: APM Server decodes a limited number of requests at a time.
type unlimited struct{}

func (unlimited) Acquire(context.Context, int64) error { return nil }
func (unlimited) TryAcquire(int64) bool                { return true }
func (unlimited) Release(int64)                        {}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := json.NewEncoder(os.Stdout)
	for {
		var one request
		if err := in.Decode(&one); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(answered(one)); err != nil {
			log.Fatal(err)
		}
	}
}

func answered(one request) answer {
	said := answer{Status: 202, Errors: []fault{}, Documents: []json.RawMessage{}}
	var result elasticapm.Result
	processor := elasticapm.NewProcessor(elasticapm.Config{Semaphore: unlimited{}, MaxEventSize: 300 << 10})
	// APM Server's processors, in its order; unsampled transactions are kept here.
	documents := modelprocessor.Chained{
		modelprocessor.SetHostHostname{},
		modelprocessor.SetServiceNodeName{},
		modelprocessor.SetGroupingKey{NewHash: func() hash.Hash { return xxhash.New() }},
		modelprocessor.SetErrorMessage{},
		&modelprocessor.SetDataStream{Namespace: "default"},
		modelpb.ProcessBatchFunc(func(_ context.Context, batch *modelpb.Batch) error {
			for _, event := range *batch {
				said.Documents = append(said.Documents, document(event))
			}
			return nil
		}),
	}
	err := processor.HandleStream(context.Background(), base(one), strings.NewReader(one.Body), 10, documents, &result)
	said.Accepted = result.Accepted
	faults := result.Errors
	if err != nil {
		faults = append(faults, err)
	}
	for _, err := range faults {
		said.Status = 400
		var invalid *elasticapm.InvalidInputError
		if errors.As(err, &invalid) {
			said.Errors = append(said.Errors, fault{invalid.Message, invalid.Document})
		} else {
			said.Status = 500
			said.Errors = append(said.Errors, fault{Message: err.Error()})
		}
	}
	return said
}

// What APM Server knows of a request before it reads its body.
func base(one request) *modelpb.APMEvent {
	event := &modelpb.APMEvent{Timestamp: one.Received}
	if one.Client != "" {
		address := modelpb.Addr2IP(netip.MustParseAddr(one.Client))
		event.Client = &modelpb.Client{Ip: address}
		event.Source = &modelpb.Source{Ip: address, Port: one.Port}
		event.UserAgent = &modelpb.UserAgent{Original: one.UserAgent}
	}
	return event
}

func document(event *modelpb.APMEvent) json.RawMessage {
	var writer fastjson.Writer
	if err := modeljson.MarshalAPMEvent(event, &writer); err != nil {
		log.Fatal(err)
	}
	return indexed(writer.Bytes())
}

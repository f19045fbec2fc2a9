// The placement of Thanos Receive: its own hashrings, asked for the endpoints of series.
//
// Reads cases from standard input, one JSON object each, and writes an answer to each in a line:
//
//	{"algorithm": "ketama", "replication": 3, "config": "[{…}]", "queries": [{"tenant": "a", "labels": [["name", "value"], …]}, …]}
//	{"error": "…"} or {"answers": [["a:1", "b:1", "c:1"], …]}
//
// The configuration is the text of a file of hashrings. In an answer, an error stands in place of an endpoint, after "!".
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/thanos-io/thanos/pkg/receive"
	"github.com/thanos-io/thanos/pkg/store/labelpb"
	"github.com/thanos-io/thanos/pkg/store/storepb/prompb"
)

type query struct {
	Tenant string      `json:"tenant"`
	Labels [][2]string `json:"labels"`
}

type ringCase struct {
	Algorithm   string  `json:"algorithm"`
	Replication uint64  `json:"replication"`
	Config      string  `json:"config"`
	Queries     []query `json:"queries"`
}

type answer struct {
	Error   string     `json:"error,omitempty"`
	Answers [][]string `json:"answers,omitempty"`
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	cases, encoder := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20)), json.NewEncoder(out)
	for {
		var one ringCase
		if err := cases.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		if err := encoder.Encode(answerOf(one)); err != nil {
			log.Fatal(err)
		}
		// A caller may wait for each answer.
		if err := out.Flush(); err != nil {
			log.Fatal(err)
		}
	}
}

func answerOf(one ringCase) (result answer) {
	// Some configurations make Thanos panic.
	defer func() {
		if p := recover(); p != nil {
			result = answer{Error: fmt.Sprint("panic: ", p)}
		}
	}()
	config, err := receive.ParseConfig([]byte(one.Config))
	if err != nil {
		return answer{Error: "parse: " + err.Error()}
	}
	// The loader of the file refuses this.
	if len(config) == 0 {
		return answer{Error: "configuration file is empty"}
	}
	ring, err := receive.NewMultiHashring(receive.HashringAlgorithm(one.Algorithm), one.Replication, config, prometheus.NewRegistry())
	if err != nil {
		return answer{Error: err.Error()}
	}
	for _, q := range one.Queries {
		result.Answers = append(result.Answers, placement(ring, q, one.Replication))
	}
	return result
}

func placement(ring receive.Hashring, q query, replication uint64) (members []string) {
	series := &prompb.TimeSeries{}
	for _, label := range q.Labels {
		series.Labels = append(series.Labels, labelpb.ZLabel{Name: label[0], Value: label[1]})
	}
	defer func() {
		if p := recover(); p != nil {
			members = []string{fmt.Sprint("!panic: ", p)}
		}
	}()
	for n := range replication {
		endpoint, err := ring.GetN(q.Tenant, series, n)
		if err != nil {
			members = append(members, "!"+err.Error())
			continue
		}
		members = append(members, endpoint.Address)
	}
	return members
}

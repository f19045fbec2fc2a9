package main

import (
	"bytes"
	"encoding/json"
	"log"
)

type object = map[string]any

// A document as Elasticsearch's pipelines for `traces-apm*`, `metrics-apm*` and `logs-apm*` index it, but for what they
// look up: places of addresses, and names of browsers.
func indexed(raw []byte) json.RawMessage {
	var document object
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		log.Fatal(err, string(raw))
	}
	stream := document["data_stream"].(object)
	event, _ := document["event"].(object)
	switch {
	case stream["type"] == "metrics":
		set(document, "processor", "event", "metric")
		samples(document)
	case stream["dataset"] == "apm.error":
		set(document, "processor", "event", "error")
	case stream["type"] == "logs":
		set(document, "processor", "event", "log")
	default:
		kind := "span"
		if transaction, ok := document["transaction"].(object); ok && transaction["type"] != nil {
			kind = "transaction"
		}
		set(document, "processor", "event", kind)
		duration := json.Number("0")
		if said, ok := event["duration"].(json.Number); ok {
			duration = said
		}
		nanoseconds, _ := duration.Int64()
		set(document, kind, "duration", object{"us": nanoseconds / 1000})
		delete(event, "duration")
	}
	if len(event) == 0 {
		delete(document, "event")
	}
	out, err := json.Marshal(document)
	if err != nil {
		log.Fatal(err)
	}
	return out
}

func set(document object, name, field string, value any) {
	inner, ok := document[name].(object)
	if !ok {
		inner = object{}
		document[name] = inner
	}
	inner[field] = value
}

// Metrics become fields of the document, under their whole names.
func samples(document object) {
	metricset, _ := document["metricset"].(object)
	all, _ := metricset["samples"].([]any)
	for _, one := range all {
		sample := one.(object)
		name := sample["name"].(string)
		switch sample["type"] {
		case "histogram":
			document[name] = object{"values": sample["values"], "counts": sample["counts"]}
		default:
			document[name] = sample["value"]
		}
	}
	delete(metricset, "samples")
}

// Sends events with Elastic's agent for Go, and prints what it sent as one JSON object.
//
// Usage: go SERVER_URL
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"go.elastic.co/apm/v2"
)

func main() {
	for name, value := range map[string]string{
		"ELASTIC_APM_SERVER_URL":               os.Args[1],
		"ELASTIC_APM_SECRET_TOKEN":             "secret",
		"ELASTIC_APM_SERVICE_NAME":             "shop-go",
		"ELASTIC_APM_SERVICE_VERSION":          "1.2.3",
		"ELASTIC_APM_ENVIRONMENT":              "test",
		"ELASTIC_APM_GLOBAL_LABELS":            "team=core",
		"ELASTIC_APM_API_REQUEST_TIME":         "1s",
		"ELASTIC_APM_METRICS_INTERVAL":         "1s",
		"ELASTIC_APM_CLOUD_PROVIDER":           "none",
		"ELASTIC_APM_SPAN_COMPRESSION_ENABLED": "false",
		"ELASTIC_APM_EXIT_SPAN_MIN_DURATION":   "0ms",
	} {
		os.Setenv(name, value)
	}
	tracer, err := apm.NewTracer("", "")
	if err != nil {
		panic(err)
	}
	transaction := tracer.StartTransaction("GET /item/{id}", "request")
	transaction.Context.SetLabel("region", "eu")
	transaction.Context.SetLabel("ok", true)
	transaction.Context.SetLabel("count", 3)
	transaction.Context.SetUserID("7")
	transaction.Context.SetUsername("bob")
	transaction.Context.SetCustom("cart", []int{1, 2})
	ctx := apm.ContextWithTransaction(context.Background(), transaction)
	var spans []string
	for number := range 3 {
		span, _ := apm.StartSpan(ctx, fmt.Sprintf("SELECT t%d", number), "db.postgresql.query")
		span.Context.SetLabel("number", number)
		span.Context.SetDatabase(apm.DatabaseSpanContext{Type: "sql", Statement: fmt.Sprintf("SELECT %d", number)})
		spans = append(spans, span.TraceContext().Span.String())
		span.End()
	}
	failed := tracer.NewError(errors.New("boom"))
	failed.SetTransaction(transaction)
	failed.Handled = true
	failed.Send()
	said := map[string]any{
		"service":        "shop-go",
		"trace_id":       transaction.TraceContext().Trace.String(),
		"transaction_id": transaction.TraceContext().Span.String(),
		"spans":          spans,
	}
	transaction.Result, transaction.Outcome = "HTTP 2xx", "success"
	transaction.End()
	time.Sleep(1500 * time.Millisecond)
	tracer.SendMetrics(nil)
	tracer.Flush(nil)
	tracer.Close()
	json.NewEncoder(os.Stdout).Encode(said)
}

// The same batches through the Elastic APM agent for Go: `go run . http://127.0.0.1:PORT`.
package main

import (
	"fmt"
	"net/url"
	"os"
	"runtime"
	"syscall"
	"time"

	"go.elastic.co/apm/v2"
	"go.elastic.co/apm/v2/transport"
)

const batches = 2000

func main() {
	server, err := url.Parse(os.Args[1])
	check(err)
	to, err := transport.NewHTTPTransport(transport.HTTPTransportOptions{ServerURLs: []*url.URL{server}})
	check(err)
	tracer, err := apm.NewTracerOptions(apm.TracerOptions{ServiceName: "bench", Transport: to})
	check(err)
	tracer.SetSpanStackTraceMinDuration(-1)
	// Spans shorter than a millisecond, and like ones, would not be sent at all.
	tracer.SetExitSpanMinDuration(0)
	tracer.SetSpanCompressionEnabled(false)
	for _, size := range []int{5, 20, 50} {
		for i := 0; i < 100; i++ {
			send(tracer, size)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cpu()
		for i := 0; i < batches; i++ {
			send(tracer, size)
		}
		spent := cpu() - start
		runtime.ReadMemStats(&after)
		fmt.Printf("%-36s %2d spans: %6.1f µs CPU, %6d bytes in %3d allocations\n", "Elastic APM agent for Go", size,
			float64(spent.Nanoseconds())/1000/batches, (after.TotalAlloc-before.TotalAlloc)/batches, (after.Mallocs-before.Mallocs)/batches)
	}
	stats := tracer.Stats()
	fmt.Printf("%-36s sent %d spans, %d errors\n", "", stats.SpansSent, stats.Errors.SendStream)
}

func send(tracer *apm.Tracer, size int) {
	transaction := tracer.StartTransaction("batch", "bench")
	for i := 0; i < size; i++ {
		span := transaction.StartSpan("SELECT things", "db.postgresql.query", nil)
		span.Context.SetLabel("db_query_text", "SELECT * FROM things WHERE id = $1")
		span.Context.SetLabel("db_namespace", "shop")
		span.Context.SetLabel("server_address", "db-1.internal")
		span.Context.SetLabel("server_port", 5432)
		span.Context.SetLabel("db_response_returned_rows", 17)
		span.Context.SetLabel("cached", false)
		span.Context.SetLabel("ratio", 0.75)
		span.Context.SetLabel("db_system_name", "postgresql")
		span.End()
	}
	transaction.End()
	tracer.Flush(nil)
}

func cpu() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

package main

import (
	"encoding/json"
	"fmt"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspanevent"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// A case: `texts` with an export request as protobuf, in base64. Statements are one list of the transform processor; each
// condition is one of the filter processor.
type transformCase struct {
	texts
	Body []byte `json:"body"`
}

type transformed struct {
	Body  []byte `json:"body"`
	Error string `json:"error,omitempty"`
	// The statements' errors, for each item in order.
	Failures [][]string `json:"failures,omitempty"`
}

// Visits items; `drop` returns whether to drop one, by its context.
type visitor struct {
	programs map[string][]*program
	failures [][]string
}

func (v *visitor) drop(context string, item any) bool {
	for _, parsed := range v.programs[context] {
		if parsed.run != nil {
			v.failures = append(v.failures, parsed.run(item))
		} else if parsed.holds(item) {
			return true
		}
	}
	return false
}

func transform(one json.RawMessage) any {
	var case_ transformCase
	if err := json.Unmarshal(one, &case_); err != nil {
		return refusal{err.Error()}
	}
	v := visitor{programs: map[string][]*program{}}
	lists := []texts{case_.texts}
	if case_.Conditions != nil {
		lists = nil
		for _, condition := range case_.Conditions {
			lists = append(lists, texts{Signal: case_.Signal, Context: case_.Context, Conditions: []string{condition}})
		}
	}
	for _, list := range lists {
		parsed, err := list.parse()
		if err != nil {
			return transformed{Error: err.Error()}
		}
		v.programs[parsed.context] = append(v.programs[parsed.context], parsed)
	}
	body, err := v.body(case_.Signal, case_.Body)
	if err != nil {
		return transformed{Error: err.Error()}
	}
	return transformed{Body: body, Failures: v.failures}
}

func (v *visitor) body(signal string, body []byte) ([]byte, error) {
	switch signal {
	case "logs":
		request := plogotlp.NewExportRequest()
		if err := request.UnmarshalProto(body); err != nil {
			return nil, err
		}
		v.logs(request)
		return request.MarshalProto()
	case "traces":
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalProto(body); err != nil {
			return nil, err
		}
		v.traces(request)
		return request.MarshalProto()
	case "metrics":
		request := pmetricotlp.NewExportRequest()
		if err := request.UnmarshalProto(body); err != nil {
			return nil, err
		}
		v.metrics(request)
		return request.MarshalProto()
	}
	return nil, fmt.Errorf("unknown signal %q", signal)
}

func (v *visitor) logs(request plogotlp.ExportRequest) {
	request.Logs().ResourceLogs().RemoveIf(func(r plog.ResourceLogs) bool {
		c := resourceContext(r.Resource(), r)
		defer c.Close()
		if v.drop("resource", c) {
			return true
		}
		had := r.ScopeLogs().Len() > 0
		r.ScopeLogs().RemoveIf(func(s plog.ScopeLogs) bool {
			c := scopeContext(s.Scope(), r.Resource(), s, r)
			defer c.Close()
			if v.drop("scope", c) {
				return true
			}
			had := s.LogRecords().Len() > 0
			s.LogRecords().RemoveIf(func(l plog.LogRecord) bool {
				c := logContext(r, s, l)
				defer c.Close()
				return v.drop("log", c)
			})
			return had && s.LogRecords().Len() == 0
		})
		return had && r.ScopeLogs().Len() == 0
	})
}

func (v *visitor) traces(request ptraceotlp.ExportRequest) {
	request.Traces().ResourceSpans().RemoveIf(func(r ptrace.ResourceSpans) bool {
		c := resourceContext(r.Resource(), r)
		defer c.Close()
		if v.drop("resource", c) {
			return true
		}
		had := r.ScopeSpans().Len() > 0
		r.ScopeSpans().RemoveIf(func(s ptrace.ScopeSpans) bool {
			c := scopeContext(s.Scope(), r.Resource(), s, r)
			defer c.Close()
			if v.drop("scope", c) {
				return true
			}
			had := s.Spans().Len() > 0
			s.Spans().RemoveIf(func(span ptrace.Span) bool {
				c := spanContext(r, s, span)
				defer c.Close()
				if v.drop("span", c) {
					return true
				}
				index := int64(0)
				span.Events().RemoveIf(func(event ptrace.SpanEvent) bool {
					c := eventContext(r, s, span, event, ottlspanevent.WithEventIndex(index))
					defer c.Close()
					index++
					return v.drop("spanevent", c)
				})
				return false
			})
			return had && s.Spans().Len() == 0
		})
		return had && r.ScopeSpans().Len() == 0
	})
}

func (v *visitor) metrics(request pmetricotlp.ExportRequest) {
	request.Metrics().ResourceMetrics().RemoveIf(func(r pmetric.ResourceMetrics) bool {
		c := resourceContext(r.Resource(), r)
		defer c.Close()
		if v.drop("resource", c) {
			return true
		}
		had := r.ScopeMetrics().Len() > 0
		r.ScopeMetrics().RemoveIf(func(s pmetric.ScopeMetrics) bool {
			c := scopeContext(s.Scope(), r.Resource(), s, r)
			defer c.Close()
			if v.drop("scope", c) {
				return true
			}
			had := s.Metrics().Len() > 0
			s.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				c := metricContext(r, s, m)
				defer c.Close()
				return v.drop("metric", c) || v.points(r, s, m)
			})
			return had && s.Metrics().Len() == 0
		})
		return had && r.ScopeMetrics().Len() == 0
	})
}

// Returns whether the metric had points and has none now.
func (v *visitor) points(r pmetric.ResourceMetrics, s pmetric.ScopeMetrics, m pmetric.Metric) bool {
	point := func(p any) bool {
		c := pointContext(r, s, m, p)
		defer c.Close()
		return v.drop("datapoint", c)
	}
	had, left := 0, 0
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		had = m.Gauge().DataPoints().Len()
		m.Gauge().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool { return point(p) })
		left = m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		had = m.Sum().DataPoints().Len()
		m.Sum().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool { return point(p) })
		left = m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		had = m.Histogram().DataPoints().Len()
		m.Histogram().DataPoints().RemoveIf(func(p pmetric.HistogramDataPoint) bool { return point(p) })
		left = m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		had = m.ExponentialHistogram().DataPoints().Len()
		m.ExponentialHistogram().DataPoints().RemoveIf(func(p pmetric.ExponentialHistogramDataPoint) bool { return point(p) })
		left = m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		had = m.Summary().DataPoints().Len()
		m.Summary().DataPoints().RemoveIf(func(p pmetric.SummaryDataPoint) bool { return point(p) })
		left = m.Summary().DataPoints().Len()
	}
	return had > 0 && left == 0
}

package main

import (
	"encoding/json"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottldatapoint"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlmetric"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlresource"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlscope"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspanevent"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

var answers = map[string]func(json.RawMessage) any{"ottl-check": check, "ottl": transform}

// One collection of contexts for each signal, with the functions of the transform processor, and those that the filter
// processor has besides.
var collections = map[string]*collection{
	"logs": must(ottl.NewParserCollection(settings, of(resources()), of(scopes()),
		of("log", ottllog.NewParser, ottllog.EnablePathContextNames(), transformprocessor.DefaultLogFunctionsNew()...))),
	"traces": must(ottl.NewParserCollection(settings, of(resources()), of(scopes()),
		of("span", ottlspan.NewParser, ottlspan.EnablePathContextNames(),
			transformprocessor.DefaultSpanFunctionsNew()...),
		of("spanevent", ottlspanevent.NewParser, ottlspanevent.EnablePathContextNames(),
			transformprocessor.DefaultSpanEventFunctionsNew()...))),
	"metrics": must(ottl.NewParserCollection(settings, of(resources()), of(scopes()),
		of("metric", ottlmetric.NewParser, ottlmetric.EnablePathContextNames(),
			append(transformprocessor.DefaultMetricFunctionsNew(), filterprocessor.DefaultMetricFunctionsNew()...)...),
		of("datapoint", ottldatapoint.NewParser, ottldatapoint.EnablePathContextNames(),
			transformprocessor.DefaultDataPointFunctionsNew()...))),
}

var (
	resourceContext = ottlresource.NewTransformContextPtr
	logContext      = ottllog.NewTransformContextPtr
	spanContext     = ottlspan.NewTransformContextPtr
	eventContext    = ottlspanevent.NewTransformContextPtr
	metricContext   = ottlmetric.NewTransformContextPtr
	pointContext    = ottldatapoint.NewTransformContextPtr
)

// This version does not know the schema of the resource.
func scopeContext[R any](scope pcommon.InstrumentationScope, resource pcommon.Resource, s ctxScope, _ R) *ottlscope.TransformContext {
	return ottlscope.NewTransformContextPtr(scope, resource, s)
}

type ctxScope interface {
	SchemaUrl() string
	SetSchemaUrl(string)
}

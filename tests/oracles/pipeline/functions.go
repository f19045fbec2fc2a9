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
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
)

var answers = map[string]func(json.RawMessage) any{"ottl-check": check, "ottl": transform, "relabel": relabeled}

// One collection of contexts for each signal, with the functions that all components have.
var collections = map[string]*collection{
	"logs": must(ottl.NewParserCollection(settings, of(resources()), of(scopes()),
		of("log", ottllog.NewParser, ottllog.EnablePathContextNames()))),
	"traces": must(ottl.NewParserCollection(settings, of(resources()), of(scopes()),
		of("span", ottlspan.NewParser, ottlspan.EnablePathContextNames(),
			ottlfuncs.NewIsRootSpanFactory()),
		of("spanevent", ottlspanevent.NewParser, ottlspanevent.EnablePathContextNames()))),
	"metrics": must(ottl.NewParserCollection(settings, of(resources()), of(scopes()),
		of("metric", ottlmetric.NewParser, ottlmetric.EnablePathContextNames()),
		of("datapoint", ottldatapoint.NewParser, ottldatapoint.EnablePathContextNames()))),
}

var (
	resourceContext = ottlresource.NewTransformContext
	scopeContext    = ottlscope.NewTransformContext
	logContext      = ottllog.NewTransformContext
	spanContext     = ottlspan.NewTransformContext
	eventContext    = ottlspanevent.NewTransformContext
	metricContext   = ottlmetric.NewTransformContext
	pointContext    = ottldatapoint.NewTransformContext
)

package main

import (
	"context"
	"fmt"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlresource"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlscope"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// Statements or conditions, parsed for the context that was inferred.
type program struct {
	context string
	// Runs the statements on one item; returns the errors by statement, "" for none.
	run func(item any) []string
	// Whether one of the conditions holds for the item. A condition that fails does not hold.
	holds func(item any) bool
}

type collection = ottl.ParserCollection[*program]

var settings = component.TelemetrySettings{Logger: zap.NewNop()}

type newParser[K any] func(map[string]ottl.Factory[K], component.TelemetrySettings, ...ottl.Option[K]) (ottl.Parser[K], error)

func resources() (string, newParser[*ottlresource.TransformContext], ottl.Option[*ottlresource.TransformContext]) {
	return "resource", ottlresource.NewParser, ottlresource.EnablePathContextNames()
}

func scopes() (string, newParser[*ottlscope.TransformContext], ottl.Option[*ottlscope.TransformContext]) {
	return "scope", ottlscope.NewParser, ottlscope.EnablePathContextNames()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func of[K any](name string, make newParser[K], names ottl.Option[K], more ...ottl.Factory[K]) ottl.ParserCollectionOption[*program] {
	functions := ottlfuncs.StandardFuncs[K]()
	for _, function := range more {
		functions[function.Name()] = function
	}
	parser := must(make(functions, settings, names))
	statements := func(_ *collection, _ ottl.StatementsGetter, parsed []*ottl.Statement[K]) (*program, error) {
		return &program{context: name, run: func(item any) []string {
			failures := []string{}
			for _, statement := range parsed {
				failure := ""
				if _, _, err := statement.Execute(context.Background(), item.(K)); err != nil {
					failure = err.Error()
				}
				failures = append(failures, failure)
			}
			return failures
		}}, nil
	}
	conditions := func(_ *collection, _ ottl.ConditionsGetter, parsed []*ottl.Condition[K]) (*program, error) {
		return &program{context: name, holds: func(item any) bool {
			for _, condition := range parsed {
				if holds, err := condition.Eval(context.Background(), item.(K)); err == nil && holds {
					return true
				}
			}
			return false
		}}, nil
	}
	return ottl.WithParserCollectionContext(name, &parser,
		ottl.WithStatementConverter(statements), ottl.WithConditionConverter(conditions))
}

// Statements or conditions of a signal; with `context`, paths need no context of their own.
type texts struct {
	Signal     string   `json:"signal"`
	Context    string   `json:"context"`
	Statements []string `json:"statements"`
	Conditions []string `json:"conditions"`
}

func (t texts) parse() (parsed *program, err error) {
	// The Collector would end on these; so a case that makes it panic is one that it does not accept.
	defer func() {
		if reason := recover(); reason != nil {
			parsed, err = nil, fmt.Errorf("panic: %v", reason)
		}
	}()
	parsers := collections[t.Signal]
	switch {
	case parsers == nil:
		return nil, fmt.Errorf("unknown signal %q", t.Signal)
	case t.Conditions != nil && t.Context != "":
		return parsers.ParseConditionsWithContext(t.Context, ottl.NewConditionsGetter(t.Conditions), true)
	case t.Conditions != nil:
		return parsers.ParseConditions(ottl.NewConditionsGetter(t.Conditions))
	case t.Context != "":
		return parsers.ParseStatementsWithContext(t.Context, ottl.NewStatementsGetter(t.Statements), true)
	default:
		return parsers.ParseStatements(ottl.NewStatementsGetter(t.Statements))
	}
}

package main

import (
	"encoding/json"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"
)

// A case: rules as YAML, and the labels of a series.
type relabelCase struct {
	Rules  string            `json:"rules"`
	Labels map[string]string `json:"labels"`
}

type relabelAnswer struct {
	// Absent when the series is dropped.
	Labels map[string]string `json:"labels,omitempty"`
	Keep   bool              `json:"keep"`
	// Why Prometheus does not accept the rules.
	Error string `json:"error,omitempty"`
}

func relabeled(one json.RawMessage) any {
	var case_ relabelCase
	if err := json.Unmarshal(one, &case_); err != nil {
		return refusal{err.Error()}
	}
	var rules []*relabel.Config
	if err := yaml.UnmarshalStrict([]byte(case_.Rules), &rules); err != nil {
		return relabelAnswer{Error: err.Error()}
	}
	for _, rule := range rules {
		if err := rule.Validate(model.UTF8Validation); err != nil {
			return relabelAnswer{Error: err.Error()}
		}
	}
	builder := labels.NewBuilder(labels.FromMap(case_.Labels))
	if !relabel.ProcessBuilder(builder, rules...) {
		return relabelAnswer{}
	}
	return relabelAnswer{Labels: builder.Labels().Map(), Keep: true}
}

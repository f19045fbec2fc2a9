//go:build tools

// Package tools keeps the supervisor among what this module requires.
package tools

import _ "github.com/open-telemetry/opentelemetry-collector-contrib/cmd/opampsupervisor"

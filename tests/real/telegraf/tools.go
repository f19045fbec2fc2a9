//go:build tools

// Package tools keeps Telegraf among what this module requires.
package tools

import _ "github.com/influxdata/telegraf/cmd/telegraf"

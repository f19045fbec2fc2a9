//go:build tools

// Package tools keeps Thanos among what this module requires.
package tools

import _ "github.com/thanos-io/thanos/cmd/thanos"

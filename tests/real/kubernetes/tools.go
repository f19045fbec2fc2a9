//go:build tools

// Package tools keeps the API server of Kubernetes among what this module requires.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"

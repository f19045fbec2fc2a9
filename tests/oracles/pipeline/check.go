package main

import "encoding/json"

type checked struct {
	Context string `json:"context"`
	Error   string `json:"error,omitempty"`
}

// A case is `texts`; the answer is the inferred context, or why the Collector does not accept it.
func check(one json.RawMessage) any {
	var case_ texts
	if err := json.Unmarshal(one, &case_); err != nil {
		return refusal{err.Error()}
	}
	parsed, err := case_.parse()
	if err != nil {
		return checked{Error: err.Error()}
	}
	return checked{Context: parsed.context}
}

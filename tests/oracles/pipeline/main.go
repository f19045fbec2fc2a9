// What the OpenTelemetry Collector and Prometheus make of a pipeline: their own OTTL parser, evaluator and relabeling.
// `../processors` is the same with the functions of the transform and filter processors, of a version whose modules can be had.
//
//	oracle ottl-check   which statements or conditions the Collector accepts
//	oracle ottl         the request body that the transform or filter processor leaves
//	oracle relabel      the labels that Prometheus' relabeling leaves
//
// Reads cases from standard input, one JSON object each, and writes an answer to each in a line.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
)

func main() {
	if len(os.Args) != 2 || answers[os.Args[1]] == nil {
		log.Fatal("usage: oracle ottl-check|ottl|relabel < cases")
	}
	answer := answers[os.Args[1]]
	out := bufio.NewWriter(os.Stdout)
	cases, encoder := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20)), json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		var one json.RawMessage
		if err := cases.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		if err := encoder.Encode(answer(one)); err != nil {
			log.Fatal(err)
		}
		// A caller that waits for each answer gets it; one that writes all cases at once loses little.
		if cases.InputOffset() > 0 && !cases.More() {
			if err := out.Flush(); err != nil {
				log.Fatal(err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

type refusal struct {
	Error string `json:"error"`
}

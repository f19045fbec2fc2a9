// Filebeat for the tests: all of it but the inputs that read no files.
//
// Elastic publishes its versions 8 and 9 as no Go module, so this is the last 7.17; what it asks and sends is what they
// do, but for the paths of templates.
package main

import (
	"os"

	"github.com/elastic/beats/v7/filebeat/beater"
	"github.com/elastic/beats/v7/filebeat/cmd"
	"github.com/elastic/beats/v7/filebeat/input/filestream"
	v2 "github.com/elastic/beats/v7/filebeat/input/v2"
	"github.com/elastic/beats/v7/libbeat/beat"
	"github.com/elastic/beats/v7/libbeat/logp"
)

func main() {
	inputs := func(_ beat.Info, log *logp.Logger, store beater.StateStore) []v2.Plugin {
		return []v2.Plugin{filestream.Plugin(log, store)}
	}
	if err := cmd.Filebeat(inputs, cmd.FilebeatSettings()).Execute(); err != nil {
		os.Exit(1)
	}
}

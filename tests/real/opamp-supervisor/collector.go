// A Collector for opampsupervisor to run: OTLP in and out, and the extension by which it reports to the supervisor or, without one, to
// the gateway. The supervisor needs the `nop` components when it loses the output of `collector featuregate`, as happens now and then: it
// does not know then that this Collector runs without a pipeline.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/opampextension"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/nopexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/nopreceiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "test"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			DefaultScheme:     "file",
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()},
			ConverterFactories: []confmap.ConverterFactory{confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter {
				return withoutPort{}
			})},
		}},
	})
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// By default a Collector serves its own metrics at port 8888, which may be in use where the tests run.
type withoutPort struct{}

func (withoutPort) Convert(_ context.Context, conf *confmap.Conf) error {
	if conf.IsSet("service::telemetry::metrics") {
		return nil
	}
	return conf.Merge(confmap.NewFromStringMap(map[string]any{"service::telemetry::metrics::level": "none"}))
}

func factories() (factories otelcol.Factories, err error) {
	factories.Telemetry = otelconftelemetry.NewFactory()
	factories.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory(), nopreceiver.NewFactory())
	if err != nil {
		return factories, err
	}
	factories.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory(), nopexporter.NewFactory())
	if err != nil {
		return factories, err
	}
	factories.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](opampextension.NewFactory())
	return factories, err
}

// Sends a span, a log record and a metric with OpenTelemetry's SDK for JavaScript, which is told everything by its environment.
//
// Usage: node from_environment.mjs, with the packages of package.json in NODE_MODULES.

import { createRequire } from 'node:module';

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
const { OTLPLogExporter } = require('@opentelemetry/exporter-logs-otlp-http');
const { OTLPMetricExporter } = require('@opentelemetry/exporter-metrics-otlp-http');
const { defaultResource, resourceFromAttributes } = require('@opentelemetry/resources');
const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base');
const { LoggerProvider, BatchLogRecordProcessor } = require('@opentelemetry/sdk-logs');
const { MeterProvider, PeriodicExportingMetricReader } = require('@opentelemetry/sdk-metrics');

// The detector of the environment is in the SDK for Node, which is not among these packages.
const resource = defaultResource().merge(resourceFromAttributes({ 'service.name': process.env.OTEL_SERVICE_NAME }));
const tracing = new BasicTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
tracing.getTracer('tests').startSpan('a span').end();
const logging = new LoggerProvider({
  resource, processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() })],
});
logging.getLogger('tests').emit({ body: 'a record' });
const metering = new MeterProvider({
  resource, readers: [new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() })],
});
metering.getMeter('tests').createCounter('a.counter').add(1);
for (const provider of [tracing, logging, metering]) await provider.shutdown();

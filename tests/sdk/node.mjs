// Sends telemetry with OpenTelemetry's SDK for JavaScript, and prints what it sent as one JSON object.
// Over HTTP this SDK speaks JSON.
//
// Usage: node node.mjs grpc|http ENDPOINT, with the packages of package.json in NODE_MODULES.

import { createRequire } from 'node:module';

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { context, SpanKind, SpanStatusCode, trace } = require('@opentelemetry/api');
const { SeverityNumber } = require('@opentelemetry/api-logs');
const { resourceFromAttributes } = require('@opentelemetry/resources');
const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base');
const { LoggerProvider, BatchLogRecordProcessor } = require('@opentelemetry/sdk-logs');
const { MeterProvider, PeriodicExportingMetricReader, AggregationType } = require('@opentelemetry/sdk-metrics');

const [transport, endpoint] = process.argv.slice(2);
const exporters = ['trace', 'logs', 'metrics'].map((signal) => {
  const module = require(`@opentelemetry/exporter-${signal}-otlp-${transport}`);
  const Exporter = module[{ trace: 'OTLPTraceExporter', logs: 'OTLPLogExporter', metrics: 'OTLPMetricExporter' }[signal]];
  const path = { trace: 'traces', logs: 'logs', metrics: 'metrics' }[signal];
  return new Exporter({ url: transport === 'grpc' ? endpoint : `${endpoint}/v1/${path}` });
});

const service = `node-${transport}`;
const resource = resourceFromAttributes({ 'service.name': service, 'service.version': '1.2.3' });
const attributes = {
  text: 'grüße',
  negative: -7,
  ratio: 0.25,
  yes: true,
  texts: ['a', 'b'],
  numbers: [1, 2, 3],
  'http.request.method': 'GET',
  'http.response.status_code': 503,
};

const tracing = new BasicTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(exporters[0])] });
const tracer = tracing.getTracer('tests', '0.1');
const parent = tracer.startSpan('parent', { attributes });
parent.addEvent('cache miss', { key: 'user:7' });
const inside = trace.setSpan(context.active(), parent);
const child = tracer.startSpan('child', { kind: SpanKind.CLIENT }, inside);
child.setAttribute('db.system', 'postgresql');
child.setStatus({ code: SpanStatusCode.ERROR, message: 'timed out' });

const logging = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter: exporters[1] })] });
logging.getLogger('tests').emit({
  severityNumber: SeverityNumber.WARN,
  severityText: 'WARN',
  body: 'it took long',
  attributes: { attempt: 3 },
  context: trace.setSpan(context.active(), child),
});
child.end();
parent.end();

const metering = new MeterProvider({
  resource,
  readers: [new PeriodicExportingMetricReader({ exporter: exporters[2], exportIntervalMillis: 3_600_000 })],
  views: [{ instrumentName: 'sizes', aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } }],
});
const meter = metering.getMeter('tests', '0.1');
meter.createCounter('requests', { unit: '{request}' }).add(41, { route: '/a' });
meter.createUpDownCounter('open').add(-2);
meter.createGauge('temperature').record(21.5);
for (const instrument of ['latency', 'sizes']) {
  const histogram = meter.createHistogram(instrument, { unit: 's' });
  for (const value of [0.5, 1.5, 80.0]) histogram.record(value, { route: '/a' });
}

for (const provider of [tracing, logging, metering]) {
  // Shutting down flushes, once: a flush before it would export the metrics twice.
  await provider.shutdown();
}
const { traceId, spanId } = parent.spanContext();
console.log(JSON.stringify({
  service,
  trace_id: traceId,
  parent_id: spanId,
  child_id: child.spanContext().spanId,
  attributes,
}));

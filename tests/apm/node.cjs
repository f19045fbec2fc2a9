// Sends events with Elastic's agent for Node.js, and prints what it sent as one JSON object.
//
// Usage: node node.cjs SERVER_URL, with the packages of tests/sdk/package.json in NODE_MODULES.

const { createRequire } = require('node:module');
const apm = createRequire(`${process.env.NODE_MODULES}/`)('elastic-apm-node').start({
  serviceName: 'shop-nodejs', serviceVersion: '1.2.3', environment: 'test', serverUrl: process.argv[2],
  secretToken: 'secret', globalLabels: { team: 'core' }, apiRequestTime: '1s', metricsInterval: '1s',
  cloudProvider: 'none', instrument: false, spanCompressionEnabled: false, exitSpanMinDuration: '0ms',
  logLevel: 'error',
});

// The agent ends when nothing else is left to do, with what it has.
const alive = setInterval(() => {}, 1000);
const transaction = apm.startTransaction('GET /item/{id}', 'request');
apm.setUserContext({ id: 7, username: 'bob' });
apm.setCustomContext({ cart: [1, 2] });
transaction.addLabels({ region: 'eu', ok: true, count: 3 }, false);
const spans = [0, 1, 2].map((number) => {
  const span = apm.startSpan(`SELECT t${number}`, 'db', 'postgresql', 'query');
  span.setLabel('number', number, false);
  span.setDbContext?.({ type: 'sql', statement: `SELECT ${number}` });
  span.end();
  return span.ids['span.id'];
});
apm.captureError(new Error('boom'), { handled: true }, () => {
  transaction.result = 'HTTP 2xx';
  transaction.setOutcome('success');
  transaction.end();
  setTimeout(() => apm.flush(() => {
    console.log(JSON.stringify({
      service: 'shop-nodejs', trace_id: transaction.ids['trace.id'],
      transaction_id: transaction.ids['transaction.id'], spans,
    }));
    clearInterval(alive);
    process.exit(0);
  }), 2500);
});

// Sends a transaction with Elastic's agent for Node.js, which is told everything by its environment.
//
// Usage: node -r AGENT/start.js from_environment.cjs, with the packages of tests/sdk/package.json in NODE_MODULES.

const { createRequire } = require('node:module');
const apm = createRequire(`${process.env.NODE_MODULES}/`)('elastic-apm-node');

const transaction = apm.startTransaction('a transaction', 'request');
transaction.end();
apm.flush(() => process.exit(0));

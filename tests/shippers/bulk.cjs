// Sends numbered documents with the bulk helper of a client for Node.js, and each part again until it is taken.
//
// Usage: node bulk.cjs PACKAGE URL INDEX COUNT own|made, with the packages of tests/sdk/package.json in NODE_MODULES.
// With `own` each document has an `_id` of its own and bodies are compressed, with `made` it has none. Says on
// standard error when it sends again for the first time; prints the version and how often it did.

const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { setTimeout: sleep } = require('node:timers/promises');
const load = createRequire(`${process.env.NODE_MODULES}/`);
const [name, url, index, count, ids] = process.argv.slice(2);
const { Client } = load(name);
const PART = 100;

async function main() {
  const own = ids === 'own';
  const client = new Client({ node: url, compression: own ? (name.startsWith('@opensearch') ? 'gzip' : true) : undefined });
  await client.ping();
  await client.info();
  let again = 0;
  for (let first = 0; first < Number(count); first += PART) {
    const part = Array.from({ length: Math.min(PART, count - first) }, (_, at) => first + at).map((n) => (
      { '@timestamp': 1700000000000 + n, n, message: `é "${n}"\n` }));
    for (;;) {
      try {
        const stats = await client.helpers.bulk({
          datasource: part,
          onDocument: ({ n }) => (own ? { index: { _index: index, _id: `own-${n}` } } : { create: { _index: index } }),
          onDrop: (dropped) => { throw new Error(`dropped: ${JSON.stringify(dropped)}`); },
        });
        if (stats.successful !== part.length) throw new Error(`taken: ${JSON.stringify(stats)}`);
        break;
      } catch (error) {
        if (!['ResponseError', 'ConnectionError'].includes(error.name) || ++again === 5000) throw error;
        if (again === 1) console.error('again after', error.message);
        await sleep(100);
      }
    }
  }
  console.log(JSON.parse(readFileSync(`${process.env.NODE_MODULES}/${name}/package.json`)).version, again);
}

main().catch((error) => { console.error(error); process.exit(1); });

// Fails when what is built is larger than the console may be: 100 KB, compressed by gzip -9.
import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const MOST = 100_000;
const dist = new URL("../dist/", import.meta.url);
let sum = 0;
for (const name of readdirSync(dist)) {
  const bytes = readFileSync(new URL(name, dist));
  const compressed = gzipSync(bytes, { level: 9 }).length;
  sum += compressed;
  console.log(`${name.padEnd(12)} ${String(bytes.length).padStart(8)}  ${String(compressed).padStart(7)} compressed`);
}
console.log(`${"in all".padEnd(12)} ${"".padStart(8)}  ${String(sum).padStart(7)} of at most ${MOST}`);
process.exit(sum > MOST ? 1 : 0);

// Runs the unit tests, `src/**/*.test.ts`, with Node's own runner: compiled first, since Node reads no TypeScript here.
import { spawnSync } from "node:child_process";
import { rmSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const out = path.join(root, "node_modules", ".tests");
const found = readdirSync(path.join(root, "src"), { recursive: true }).filter((file) => file.endsWith(".test.ts"));
const input = Object.fromEntries(found.map((file) => [file.replaceAll(/[\\/]/g, "-").replace(/\.ts$/, ""), path.join(root, "src", file)]));

rmSync(out, { recursive: true, force: true });
await build({
  root,
  configFile: false,
  publicDir: false,
  logLevel: "warn",
  build: { ssr: true, outDir: out, emptyOutDir: true, target: "node20", rollupOptions: { input, output: { entryFileNames: "[name].mjs" } } },
});
const tests = Object.keys(input).map((name) => path.join(out, `${name}.mjs`));
process.exit(spawnSync(process.execPath, ["--test", ...tests], { stdio: "inherit" }).status ?? 1);

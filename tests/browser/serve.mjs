// Serves `dist/` as the gateway will, for work on the pages: with its policy, with events made of `/status.json`, and everything
// else from a running gateway.
//
//   node serve.mjs [--gateway http://127.0.0.1:4319] [--port 4400] [--scene FILE.mjs]
//
// A scene replaces answers: its `default` is a function of (path, method, body, status) that gives `{status, type, body}` or nothing.
import { createServer, request } from "node:http";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const DIST = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../crates/console/pages/dist");
export const POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const FRAME_MS = 250;
const FILES = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/console/app.js": ["app.js", "text/javascript; charset=utf-8"],
  "/console/app.css": ["app.css", "text/css; charset=utf-8"],
  "/console/icon.svg": ["icon.svg", "image/svg+xml"],
};

/** Starts a server; gives its address and what ends it. */
export async function serve({ gateway = "http://127.0.0.1:4319", port = 0, scene } = {}) {
  const viewers = new Set();
  const past = new Past(() => status(gateway, scene));
  const server = createServer(async (req, res) => {
    const url = new URL(req.url, "http://localhost");
    const file = FILES[url.pathname];
    const headers = { "content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-store" };
    if (file && req.method === "GET") {
      res.writeHead(200, { ...headers, "content-type": file[1] });
      res.end(readFileSync(path.join(DIST, file[0])));
      return;
    }
    if (url.pathname === "/console/events") {
      res.writeHead(200, { ...headers, "content-type": "text/event-stream" });
      res.write("retry: 1000\n\n");
      const send = async () => {
        try {
          res.write(`data: ${await status(gateway, scene)}\n\n`);
        } catch {
          res.end();
        }
      };
      // More often than a gateway does, so that a test waits less.
      const timer = setInterval(send, FRAME_MS);
      viewers.add(res);
      res.on("close", () => (clearInterval(timer), viewers.delete(res)));
      await send();
      return;
    }
    let body = "";
    for await (const piece of req) body += piece;
    if (scene) {
      const answer = await scene(url, req.method, body, () => plainStatus(gateway), req.headers);
      if (answer) {
        res.writeHead(answer.status ?? 200, { ...headers, "content-type": answer.type ?? "application/json" });
        res.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
        return;
      }
    }
    if (url.pathname === "/console/history" && !(await hasHistory(gateway))) {
      res.writeHead(200, { ...headers, "content-type": "application/json" });
      res.end(JSON.stringify(past.answer()));
      return;
    }
    const target = new URL(req.url, gateway);
    const forwarded = request(target, { method: req.method, headers: { ...req.headers, host: target.host, ...(req.headers.origin ? { origin: target.origin } : {}) } }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    });
    forwarded.on("error", () => (res.writeHead(502), res.end("the gateway does not answer\n")));
    forwarded.end(body);
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  const stop = () => {
    past.stop();
    for (const viewer of viewers) viewer.destroy();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, stop };
}

/** Whether the gateway keeps a history of its own. */
const hasHistory = (gateway) => fetch(new URL("/console/history", gateway)).then((answer) => answer.ok, () => false);

/** The last 15 minutes in steps of five seconds, from the time on that this server runs. */
class Past {
  #points = [];
  #last;
  #at = new Date();

  constructor(read) {
    const add = () =>
      read()
        .then((text) => this.#add(JSON.parse(text)))
        .catch(() => undefined);
    this.timer = setInterval(add, 5_000);
    add();
  }

  #add(status) {
    const all = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);
    const refused = {};
    for (const source of status.books.sources) {
      for (const [reason, count] of Object.entries(source.refused)) refused[reason] = (refused[reason] ?? 0) + count;
    }
    const now = { received: status.books.sources.reduce((sum, source) => sum + all(source.items) + source.forwarded, 0), delivered: status.sinks.reduce((sum, sink) => sum + sink.delivered, 0), refused };
    const last = this.#last;
    this.#last = now;
    this.#at = new Date(status.at);
    if (!last) return;
    const point = { received: now.received - last.received, delivered: now.delivered - last.delivered, refused: {}, journal_bytes: status.journal.bytes, resident: status.memory.resident?.now ?? 0, payload: status.memory.payload.shares.reduce((sum, share) => sum + share.used, 0) };
    for (const reason in refused) point.refused[reason] = refused[reason] - (last.refused[reason] ?? 0);
    this.#points = [...this.#points, point].slice(-180);
  }

  answer() {
    return { step_seconds: 5, at: this.#at.toISOString(), points: this.#points };
  }

  stop() {
    clearInterval(this.timer);
  }
}

async function plainStatus(gateway) {
  const ask = () => fetch(new URL("/status.json", gateway));
  // A connection that is kept may be closed by the gateway just as it is used again.
  return (await ask().catch(ask)).text();
}

async function status(gateway, scene) {
  const changed = scene && (await scene(new URL("/status.json", "http://localhost"), "GET", "", () => plainStatus(gateway), {}));
  if (changed) return typeof changed.body === "string" ? changed.body : JSON.stringify(changed.body);
  return plainStatus(gateway);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);
  const scene = option("--scene");
  const loaded = scene && (await import(pathToFileURL(path.resolve(scene)))).default;
  const { url } = await serve({ gateway: option("--gateway"), port: Number(option("--port") ?? 4400), scene: loaded });
  console.log(`serving the pages at ${url}/`);
}

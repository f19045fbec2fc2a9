// A gateway that searches: answers as `crates/search` shapes them, of made-up rows.
const HEX = "0123456789abcdef";
let seed = 7;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
const hex = (digits) => Array.from({ length: digits }, () => HEX[Math.floor(random() * 16)]).join("");
const one = (all) => all[Math.floor(random() * all.length)];
const SERVICES = ["frontend", "checkout", "cart", "payments", "search", "recommendations"];
const NAMES = ["GET /cart", "POST /api/checkout", "SELECT orders", "charge card", "publish order.created", "GET /products/{id}", "cache get"];
const nano = (ms, ns = 0) => new Date(ms).toISOString().replace("Z", `${String(ns).padStart(6, "0")}Z`);
const common = (time, service, trace_id, span_id) => ({ time, service, trace_id, span_id, scope: "io.opentelemetry.http-server", attributes: { "http.request.method": "POST", "http.route": "/api/checkout", "http.response.status_code": 500, "url.query": "a=1&b=<script>alert(1)</script>", "enduser.id": `user-${hex(8)}` }, resource: { "service.name": service, "k8s.pod.name": `${service}-6b54cda58fb-3`, "host.name": "node-3" }, from: "lake", cut: false });

function log(time, service, trace_id = null, span_id = null) {
  const severity = one([9, 9, 9, 9, 5, 13, 17]);
  const body = severity === 17 ? "charging the card failed: upstream connect error or disconnect/reset before headers. retried and the latest reset reason: connection timeout" : `handled /api/checkout for user ${Math.floor(random() * 1e9)} in ${Math.floor(random() * 900)} ms`;
  return { ...common(time, service, trace_id ?? hex(32), span_id ?? hex(16)), severity, severity_text: "", event_name: null, body, from: random() < 0.1 ? "journal" : "lake" };
}

function trace(trace_id, now) {
  const spans = [];
  const begin = now - 90_000;
  const add = (parent, start, duration, depth, service) => {
    const id = hex(16);
    const failed = depth > 1 && random() < 0.12;
    spans.push({ ...common(nano(begin + Math.floor(start / 1e6), Math.floor(start % 1e6)), service, trace_id, id), name: one(NAMES), duration_ns: Math.floor(duration), kind: depth % 2 ? 3 : 2, status: failed ? 2 : 0, status_message: failed ? "deadline exceeded after 250 ms" : null, parent_span_id: parent, events: failed ? [{ time: nano(begin), name: "exception", attributes: { "exception.type": "Timeout" } }] : [] });
    if (depth > 4) return;
    let at = start + duration * 0.05;
    const children = depth === 0 ? 4 : Math.floor(random() * 4);
    for (let child = 0; child < children && at < start + duration * 0.9; child++) {
      const length = Math.min(start + duration * 0.97 - at, (duration / (children + 0.5)) * (0.4 + random()));
      add(id, at, length, depth + 1, random() < 0.4 ? service : one(SERVICES));
      at += length * (random() < 0.3 ? 0.4 : 1.05);
    }
  };
  add(null, 0, 412e6, 0, "frontend");
  const logs = spans.filter(() => random() < 0.35).map((span) => log(span.time, span.service, trace_id, span.span_id));
  return { spans, logs: [...logs, log(nano(begin), "frontend", trace_id, "ffffffffffffffff")], ...end() };
}

const end = (more) => ({ answer_cut: false, has_more: false, incomplete: [], milliseconds: 42, from_lake: 100, from_journal: 12, lake: { files_read: 4, files_skipped: 90, rows_read: 120000 }, journal: { since: new Date(Date.now() - 3e6).toISOString(), records_read: 40, rows_read: 900 }, sql: "SELECT * FROM read_parquet('lake/v1/logs/*/*/*.parquet')", ...more });

export default async function search(url, _method, body, _status, headers) {
  if (url.pathname === "/console/session") return { body: { token: "t0", operator: true, search: true } };
  if (!url.pathname.startsWith("/console/search/")) return undefined;
  if (headers["x-tidegate-token"] !== "t0") return { status: 403, type: "text/plain", body: "the token of this page is not the gateway's\n" };
  const query = JSON.parse(body);
  const now = Date.now();
  const from = Date.parse(query.from ?? "") || now - 3_600_000;
  const to = Date.parse(query.to ?? "") || now;
  switch (url.pathname.split("/").pop()) {
    case "services":
      return { body: { services: SERVICES, ...end() } };
    case "logs": {
      const rows = Array.from({ length: 120 }, (_, index) => log(nano(to - index * ((to - from) / 400), index), query.service ?? one(SERVICES)));
      const histogram = Array.from({ length: 60 }, (_, index) => {
        const base = 40 + 30 * Math.sin(index / 6) + 10 * random();
        return { time: nano(from + (index * (to - from)) / 60), unset: 0, trace: 0, debug: Math.floor(base / 4), info: Math.floor(base), warn: Math.floor(base / 9), error: index > 40 && index < 48 ? Math.floor(base / 3) : Math.floor(random() * 2), fatal: 0 };
      });
      return { body: { histogram, logs: rows, ...end({ has_more: true, incomplete: ["the time was over after 10 seconds: a shorter range of time takes less"] }) } };
    }
    case "traces":
      return { body: { traces: Array.from({ length: 40 }, (_, index) => ({ trace_id: hex(32), time: nano(to - index * 31_000), duration_ns: Math.floor(5e6 + random() ** 3 * 1.4e9), name: one(NAMES), service: one(SERVICES), has_root: true, spans: 3 + Math.floor(random() * 60), errors: random() < 0.2 ? 1 + Math.floor(random() * 3) : 0 })), ...end() } };
    case "trace":
      return { body: trace(query.trace_id, now) };
    case "metrics":
      return { body: { metrics: ["http.server.request.duration", "process.cpu.time", "process.memory.usage", "http_requests_total", "queue.length"].map((name, index) => ({ name, unit: ["s", "s", "By", null, "1"][index], kind: ["histogram", "sum", "gauge", "sum", "gauge"][index], description: `What ${name} is.`, labels: ["service", "pod"] })), ...end() } };
    case "plot": {
      const steps = 120;
      const times = Array.from({ length: steps }, (_, index) => nano(from + ((index + 1) * (to - from)) / steps));
      const series = SERVICES.map((service, place) => ({ labels: { service, zone: "a" }, values: times.map((_, index) => (index < 10 && place === 2 ? null : 100 + 40 * place + 30 * Math.sin(index / (8 + place)) + 10 * random())) }));
      return { body: { times, series, ...end() } };
    }
    default:
      return undefined;
  }
}

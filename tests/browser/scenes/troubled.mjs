// Takes the real status and makes trouble of it.
const ago = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();
const agent = (i) => ({ id: `0c7b1d5e-6f7a-4d1c-9d0e-${String(i).padStart(12, "0")}`, hostname: i === 7 ? undefined : `node-${i}.eu-west-1.compute.internal`, policy_id: i % 3 ? "linux-hosts" : "kubernetes", policy_revision: 14 - (i % 2), status: ["online", "degraded", "online", "error", "starting", "unknown"][i % 6], waiting: i % 6 !== 5, version: "8.15.1", enrolled_at: ago(9e6), last_seen: ago(20 * i), tags: ["web", "prod"] });
const unit = (id, status, message) => ({ id, type: "input", status, message });
const details = {
  components: [
    { id: "log-default", type: "log", status: "DEGRADED", message: "Degraded: one unit of 2 is not healthy", units: [unit("log-default-logfile-system", "HEALTHY", "Healthy"), unit("log-default-logfile-nginx", "FAILED", "could not open /var/log/nginx/access.log: permission denied. <script>alert(1)</script> stays text, and long messages are cut where there is too much of them to be read at a glance, with a button for the rest of what was said")] },
    { id: "beat/metrics-monitoring", type: "beat/metrics", status: "HEALTHY", message: "Healthy: communicating with pid 4711", units: [] },
  ],
  upgrade_details: { target_version: "8.15.3", state: "UPG_DOWNLOADING", metadata: { download_percent: 0.17 } },
  local_metadata: { elastic: { agent: { id: "0c7b1d5e", version: "8.15.1", snapshot: false } }, host: { hostname: "node-3.eu-west-1.compute.internal", architecture: "x86_64", ip: ["127.0.0.1/8", "10.2.3.4/16"] }, os: { family: "debian", kernel: "6.1.0-25-amd64", name: "Debian GNU/Linux" } },
  user_provided_metadata: {},
};
const start = Date.now();
export default async function scene(url, method, body, status) {
  if (url.pathname === "/console/history") {
    const points = []; let seed = 1;
    const rnd = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let i = 0; i < 180; i++) { const base = 260000 + 60000*Math.sin(i/14) + 26000*rnd(); points.push({ received: base, delivered: i > 120 ? base*0.62 : base*(0.97+0.06*rnd()), refused: i>150 ? { memory: 40*rnd(), malformed: 8*rnd() } : {}, journal_bytes: 1e9+i*1e7, resident: 3e7, payload: 1e7 }); }
    return { body: { step_seconds: 5, at: new Date().toISOString(), points } };
  }
  if (url.pathname === "/fleet/agents") return { body: { agents: Array.from({ length: 50 }, (_, i) => agent(i)), next: agent(49).id } };
  if (url.pathname.startsWith("/fleet/agents/")) return { body: { ...agent(3), ...details } };
  if (url.pathname !== "/status.json") return;
  const s = JSON.parse(await status());
  const t = (Date.now() - start) / 1000;
  const now = Date.parse(s.at);
  const iso = (ms) => new Date(now + ms).toISOString();
  s.state = "pushing_back";
  s.reason = "requests are refused: memory; sink `upstream-eu-1` is 12 min 4 s behind: connecting to 10.12.0.7:9090: connection refused; 2 more sinks are late";
  s.refused_lately = ["memory"];
  const m = s.memory;
  m.limit = 268435456;
  m.resident = { now: 1.6e8 + 1e7*Math.sin(t), peak: 2.31e8, anonymous: 1.2e8, file: 8e6 };
  m.payload.shares = [
    { name: "ingest", floor: 13686912, at_most: 175943552, used: 7.2e7 + 8e6*Math.sin(t), peak: 1.2e8, waiting: 14 },
    { name: "decode", floor: 13686912, at_most: 175943552, used: 1.4e7, peak: 4e7, waiting: 0 },
    { name: "egress", floor: 29360128, at_most: 191616768, used: 3.1e7, peak: 4.4e7, waiting: 0 },
    { name: "lake", floor: 29360128, at_most: 191616768, used: 25165824, peak: 25198592, waiting: 0 }];
  m.payload.idle = 4e6; m.connections_open = 3120;
  Object.assign(s.journal, { bytes: 16.2e9 + t*1e6, full_in_seconds: 2712 - t, segments: 242, oldest_age_seconds: 724 + t, items_total: 91e6 + t*52000, items_per_second: 52000 });
  const base = s.sinks[0];
  const sink = (name, kind, target, more) => ({ ...base, name, kind, target, cursor: 5000, requests: 12000, delivered: Math.floor(8.2e7 + t*18000), bytes: 2.1e9 + t*9e5, items_per_second: 18000, lag: { items: 0, bytes: 0, age_seconds: null }, usual_lag_seconds: 2, pipeline: [], dropped: {}, ...more });
  s.sinks = [
    { ...base, delivered: Math.floor(9e7 + t*52000) },
    sink("upstream-eu-1", "prometheus_remote_write", "http://10.12.0.7:9090/api/v1/write", { failures: 411, retry_at: iso(12000), in_flight: 0, delivered: 82000000, lag: { items: 37440000 + Math.floor(52000*t), bytes: 4.4e9, age_seconds: 724 + t }, last_success: iso(-724000), last_error: { message: "connecting to 10.12.0.7:9090: connection refused", at: iso(-2000) }, dropped: { rejected: 1412, too_large: 3 } }),
    sink("search", "elasticsearch", "https://es.example:9200", { in_flight: 4, concurrency_limit: 8.4, usual_lag_seconds: 1, lag: { items: 80000, bytes: 4e7, age_seconds: 14.2 }, waiting: [{ index: "logs-checkout-default", records: 12, documents: 4211, since: iso(-90000), reason: "index_closed_exception: closed, and <script>alert(1)</script> stays text" }], pipeline: [{ pipeline: "redact", step: "drop health checks", items: 4.2e6+Math.floor(t*800), filtered: 120000, sampled_out: 0, failures: 0 }, { pipeline: "redact", step: "mask cards", items: 4.1e6, filtered: 0, sampled_out: 0, failures: 14 }] }),
    sink("thanos", "thanos_receive", "hashring of 6 members", { in_flight: 12, lag: { items: 400, bytes: 1e5, age_seconds: .4 }, members: Array.from({ length: 6 }, (_, i) => ({ address: `thanos-receive-${i}.monitoring.svc.cluster.local:19291`, in_ring: i < 5, behind: i === 2, share: i < 5 ? .2 : null, in_flight: i, delivered: 9e6 + i, rejected: i === 1 ? 12 : 0, conflicts: i === 1 ? { out_of_order: 311 } : {}, failures: i === 2 ? 90 : 0, handed_off_bytes: i === 2 ? 8.2e7 : 0, handed_off_requests: i === 2 ? 1200 : 0, oldest: i === 2 ? iso(-400000) : null, last_error: i === 2 ? { message: "503: store is not ready", at: iso(-3000) } : null })) }),
    sink("otel", "otlp", "https://collector.example:4318", { in_flight: 2, usual_lag_seconds: 1, lag: { items: 1.2e6, bytes: 9e7, age_seconds: 42 }, items_per_second: 70000 }),
  ];
  s.left_behind = [{ name: "old-vendor", items: 12000, bytes: 3145728, age_seconds: 7200, command: "tidegate journal forget old-vendor" }];
  for (const src of s.books.sources) if (src.name === "prometheus_remote_write") { src.refused = { memory: 310 + Math.floor(t*9), malformed: 12, rate_limit: 40 }; src.received += 362 + Math.floor(t*9); src.items.metrics += Math.floor(9e7+52000*t); src.items_refused = { malformed: 3 }; }
  s.source_pipelines = [{ source: "otlp", steps: [{ pipeline: "sampling", step: "tail sampling of healthy traces", items: 9e5, filtered: 0, sampled_out: 7.1e5, failures: 0 }] }];
  s.books.sinks = s.sinks.map((k) => { const d = Object.values(k.dropped).reduce((a, b) => a + b, 0); return { name: k.name, accepted: k.delivered + d + k.lag.items, replayed: 0, delivered: k.delivered, passed: 0, queued: k.lag.items, dropped: k.dropped, difference: 0 }; });
  s.tenants = { known: 41, most: 64, shown: Array.from({ length: 32 }, (_, i) => ({ name: i === 3 ? "a-very-long-tenant-name-that-somebody-made-up-for-a-test-of-cutting-‮gnp" : `team-${["checkout","search","payments","infra","mobile","ads"][i % 6]}-${i}`, received: 9000 - i * 200, accepted: 8900 - i * 210, refused: i % 4 ? 0 : 100 + 10 * i, mostly: i % 4 ? null : ["memory", "rate_limit"][i % 2], open: i % 3, items: 9e6 - i * 2e5, bytes: 4e9 / (i + 1), held: i < 5 ? 8e6 / (i + 1) : 0 })) };
  s.handshakes = { done: 9120, failed: [{ reason: "client_certificate", count: 42, advice: "the client sent no certificate: give it one that `client_ca_file` signed, or set `client_auth: optional`" }] };
  s.fleet = { agents: 3120, waiting: 3001, in_rollout: 118, by_status: [["online", 3001], ["degraded", 80], ["error", 12]], by_version: [["8.15.1", 2200], ["8.14.3", 800], ["8.11.0", 93]], check_ins_per_second: 10.4, refused: 12, policies: [{ id: "linux-hosts", revision: 14, agents: 2000, up_to_date: 1882, rollout_seconds: [12.1, null, null] }, { id: "kubernetes", revision: 3, agents: 1120, up_to_date: 1120, rollout_seconds: [4, 22, 60] }] };
  return { body: s };
}

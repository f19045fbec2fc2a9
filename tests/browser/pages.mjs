// The pages to visit: those of the navigation, and one of each kind of detail.

/** Their addresses, what is there when they are ready, and what to press then. */
export async function pagesOf(url) {
  const status = await (await fetch(`${url}/status.json`)).json();
  const at = (name, hash, ready, press) => ({ name, hash, ready, press });
  const named = (page, all) => all.slice(0, 1).map((one) => at(page, `#/${page}s/${encodeURIComponent(one.name)}`, "main .card"));
  const trace = await anyTrace(url);
  return [
    at("overview", "#/", ".state h1"),
    at("flow", "#/flow", ".flow-card a"),
    at("sinks", "#/sinks", "main .card"),
    ...named("sink", status.sinks),
    at("sources", "#/sources", "main table"),
    ...named("source", status.books.sources),
    at("tenants", "#/tenants", "main .card, main .empty"),
    ...named("tenant", status.tenants?.shown ?? []),
    at("memory", "#/memory", "main table"),
    at("journal", "#/journal", "main .facts"),
    at("rejects", "#/rejects", "main .card"),
    at("files", "#/files", "main .card, main .empty"),
    at("agents", "#/agents", "main .card, main .empty"),
    at("configuration", "#/configuration", "main .card"),
    at("tap", "#/tap", "main .tap-card", ".tap-line > button"),
    at("traces", "#/traces", "main .card"),
    ...(trace ? [at("trace", `#/traces/${trace.trace_id}?around=${encodeURIComponent(trace.time)}`, ".waterfall", ".span-open")] : []),
    at("logs", "#/logs", "main .card", ".log-line > button"),
    at("metrics", "#/metrics", "main .card", ".metric-names button"),
    at("not-found", "#/no-such-page", "main .empty"),
  ];
}

/** A trace that the gateway has, where it searches and has one. */
async function anyTrace(url) {
  const answer = await fetch(`${url}/console/session`);
  if (!answer.ok) return undefined;
  const session = await answer.json();
  if (!session.search) return undefined;
  const headers = { "content-type": "application/json", "x-tidegate-token": session.token };
  const found = await fetch(`${url}/console/search/traces`, { method: "POST", headers, body: '{"limit":1}' });
  return found.ok ? (await found.json()).traces[0] : undefined;
}

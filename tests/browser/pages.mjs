// The pages to visit: those of the navigation, and one of each kind of detail.

/** Opens the dialog that discards the dead letters of a sink. */
export const DISCARD = 'main button[aria-label^="Discard"]';

/** Their addresses, what is there when they are ready, and what to press then. */
export async function pagesOf(url) {
  const status = await (await fetch(`${url}/status.json`)).json();
  const at = (name, hash, ready, press) => ({ name, hash, ready, press });
  const named = (page, all) => all.slice(0, 1).map((one) => at(page, `#/${page}s/${encodeURIComponent(one.name)}`, "main .card"));
  const [trace] = await found(url, "traces");
  const [log] = await found(url, "logs");
  const [metric] = await found(url, "metrics");
  const [agent] = await agents(url);
  const [letter] = await found(url, "dead-letters", "letters");
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
    at("rejects", "#/rejects", letter ? DISCARD : "main .card"),
    ...(letter ? [at("discard", "#/rejects", DISCARD, DISCARD)] : []),
    ...(letter ? [at("letter", `#/rejects?letter=${letter.id}`, "dialog.drawer .log-line", "dialog.drawer .log-line > button")] : []),
    at("files", "#/files", "main .card, main .empty"),
    at("agents", "#/agents", "main .card, main .empty"),
    ...(agent ? [at("agent", `#/agents?agent=${agent.id}`, "dialog.drawer .facts")] : []),
    at("configuration", "#/configuration", "main .card"),
    at("tap", "#/tap", "main .tap-card", (await flows(url)) ? ".tap-line > button" : undefined),
    at("traces", "#/traces", "main .card"),
    ...(trace ? [at("trace", `#/traces/${trace.trace_id}?around=${encodeURIComponent(trace.time)}`, ".waterfall", ".span-open")] : []),
    at("logs", "#/logs", "main .card", log && ".log-line > button"),
    at("metrics", "#/metrics", "main .card", metric && ".metric-names button"),
    at("not-found", "#/no-such-page", "main .empty"),
  ];
}

/** What the gateway has of a kind, where it searches. */
async function found(url, kind, rows = kind) {
  const answer = await fetch(`${url}/console/session`);
  if (!answer.ok) return [];
  const session = await answer.json();
  if (!session.search) return [];
  const headers = { "content-type": "application/json", "x-tidegate-token": session.token };
  const found = await fetch(`${url}/console/search/${kind}`, { method: "POST", headers, body: '{"limit":1}' });
  return found.ok ? (await found.json())[rows] : [];
}

/** An agent, where there are some. */
async function agents(url) {
  const answer = await fetch(`${url}/fleet/agents?limit=1`);
  return answer.ok ? (await answer.json()).agents : [];
}

/** Whether anything passes a source just now, for a tap to show. */
async function flows(url) {
  const answer = await fetch(`${url}/tap?id=browser-test&wait=2s&source=*`);
  return answer.ok && (await answer.text()).includes('"signal"');
}

// The pages to visit: those of the navigation, and one of each kind of detail.

/** Their addresses, and what is there when they are ready. */
export async function pagesOf(url) {
  const status = await (await fetch(`${url}/status.json`)).json();
  const session = await (await fetch(`${url}/console/session`)).json().catch(() => undefined);
  const at = (name, hash, ready) => ({ name, hash, ready });
  const named = (page, all) => all.slice(0, 1).map((one) => at(page, `#/${page}s/${encodeURIComponent(one.name)}`, "main .card"));
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
    at("tap", "#/tap", "main .tap-card"),
    ...(session?.search ? [at("traces", "#/traces"), at("logs", "#/logs")] : []),
    at("not-found", "#/no-such-page", "main .empty"),
  ];
}

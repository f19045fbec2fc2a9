// A gateway that has received nothing yet, and has no sink.
export default async function empty(url, _method, _body, status) {
  if (url.pathname === "/console/configuration") return { body: { file: null, text: "listen:\n  http: 0.0.0.0:4318\n  grpc: 127.0.0.1:4317\n", plan: [] } };
  if (url.pathname === "/console/history") return { body: { step_seconds: 5, at: new Date().toISOString(), points: [] } };
  if (url.pathname !== "/status.json") return undefined;
  const frame = JSON.parse(await status());
  frame.reason = "data is accepted, but no sink is configured";
  Object.assign(frame.journal, { bytes: 0, segments: 0, head: 0, items_total: 0, items_per_second: null, full_in_seconds: null, oldest_age_seconds: null, syncs: { count: 0, mean_seconds: 0 } });
  frame.sinks = [];
  frame.books.sinks = [];
  frame.books.journal = { accepted: 0, handed_over: 0, appended: 0, difference: 0 };
  for (const source of frame.books.sources) Object.assign(source, { received: 0, accepted: 0, items: {}, bytes: 0 });
  return { body: frame };
}

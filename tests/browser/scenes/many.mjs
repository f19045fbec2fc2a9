// As many sinks and tenants as a frame may have, all busy: what the pages cost then.
const begun = Date.now();

export default async function many(url, _method, _body, status) {
  if (url.pathname !== "/status.json") return undefined;
  const frame = JSON.parse(await status());
  const seconds = (Date.now() - begun) / 1000;
  const [first] = frame.sinks;
  frame.sinks = Array.from({ length: 64 }, (_, index) => ({
    ...first,
    name: `sink-${index}`,
    kind: ["otlp", "elasticsearch", "prometheus_remote_write", "http"][index % 4],
    delivered: Math.floor(1e6 + seconds * 100 * (index + 1)),
    in_flight: Math.floor(seconds + index) % 9,
    lag: index % 9 === 5 ? { items: 5000, bytes: 1e6, age_seconds: 60 + seconds } : { items: index, bytes: index * 100, age_seconds: 0.2 },
  }));
  frame.books.sinks = frame.sinks.map((sink) => ({ name: sink.name, accepted: sink.delivered + sink.lag.items, replayed: 0, delivered: sink.delivered, passed: 0, queued: sink.lag.items, dropped: {}, difference: 0 }));
  frame.tenants = {
    known: 64,
    most: 64,
    shown: Array.from({ length: 64 }, (_, index) => ({ name: `tenant-${index}`, received: Math.floor(seconds * index), accepted: Math.floor(seconds * index), refused: 0, mostly: null, open: index % 3, items: Math.floor(seconds * 100 * index), bytes: Math.floor(seconds * 9000 * index), held: index * 1000 })),
  };
  return { body: frame };
}

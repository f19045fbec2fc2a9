// How to send data, while there is none.
import { useEffect, useState } from "preact/hooks";
import { getConfiguration, listeners, reachable, type Listener } from "../../data/configuration";
import { Card } from "../../ui/card";
import { Copy } from "../../ui/copy";

const HTTP = 4318;
const GRPC = 4317;

export function GettingStarted() {
  const [known, know] = useState(new Map<string, Listener>());
  useEffect(() => {
    void getConfiguration().then((answer) => {
      if (answer.ok) know(listeners(answer.value.text));
    });
  }, []);
  const url = (name: string, port: number): string => {
    const host = location.hostname;
    const listener = known.get(name) ?? { address: `${host}:${port}`, tls: false };
    return `${listener.tls ? "https" : "http"}://${reachable(listener.address, host)}`;
  };
  const http = url("http", HTTP);
  const grpc = url("grpc", GRPC);
  return (
    <Card title="Nothing has arrived yet" class="started">
      <p class="say">Point an application, a Collector or Prometheus at this gateway:</p>
      <dl class="commands">
        <Command title="OpenTelemetry, over HTTP" text={`export OTEL_EXPORTER_OTLP_ENDPOINT=${http}`} />
        <Command title="OpenTelemetry, over gRPC" text={`export OTEL_EXPORTER_OTLP_ENDPOINT=${grpc} OTEL_EXPORTER_OTLP_PROTOCOL=grpc`} />
        <Command title="Prometheus, remote write" text={`url: ${http}/api/v1/write`} />
        <Command title="Everything else, with ready-made snippets" text="tidegate connect" />
      </dl>
    </Card>
  );
}

function Command({ title, text }: { title: string; text: string }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <code>{text}</code>
        <Copy text={text} what={title} />
      </dd>
    </div>
  );
}

// How to send data, while there is none.
import { useEffect, useState } from "preact/hooks";
import { getConfiguration, listenAddresses, reachable } from "../../data/configuration";
import { Card } from "../../ui/card";
import { Copy } from "../../ui/copy";

const HTTP = 4318;
const GRPC = 4317;

export function GettingStarted() {
  const [addresses, know] = useState(new Map<string, string>());
  useEffect(() => {
    void getConfiguration().then((answer) => {
      if (answer.ok) know(listenAddresses(answer.value.text));
    });
  }, []);
  const host = location.hostname;
  const http = reachable(addresses.get("http") ?? `${host}:${HTTP}`, host);
  const grpc = reachable(addresses.get("grpc") ?? `${host}:${GRPC}`, host);
  return (
    <Card title="Nothing has arrived yet" class="started">
      <p class="say">Point an application, a Collector or Prometheus at this gateway:</p>
      <dl class="commands">
        <Command title="OpenTelemetry, over HTTP" text={`export OTEL_EXPORTER_OTLP_ENDPOINT=http://${http}`} />
        <Command title="OpenTelemetry, over gRPC" text={`export OTEL_EXPORTER_OTLP_ENDPOINT=http://${grpc} OTEL_EXPORTER_OTLP_PROTOCOL=grpc`} />
        <Command title="Prometheus, remote write" text={`url: http://${http}/api/v1/write`} />
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

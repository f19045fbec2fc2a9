import { Empty } from "../ui/card";
import { link } from "../router";
import { Agents } from "./agents/agents";
import { Configuration } from "./configuration/configuration";
import { Files } from "./files";
import { Flow } from "./flow/flow";
import { Journal } from "./journal";
import { Memory } from "./memory";
import { Overview } from "./overview/overview";
import { Rejects } from "./rejects";
import { Logs } from "./search/logs";
import { Metrics } from "./search/metrics";
import { TracePage } from "./search/trace";
import { Traces } from "./search/traces";
import { SinkPage } from "./sinks/sink";
import { Sinks } from "./sinks/sinks";
import { SourcePage } from "./sources/source";
import { Sources } from "./sources/sources";
import { Tap } from "./tap/tap";
import { TenantPage, Tenants } from "./tenants";

/** The page of a route. */
export function PageOf({ page, name }: { page: string; name: string | undefined }) {
  switch (page) {
    case "overview":
      return <Overview />;
    case "flow":
      return <Flow />;
    case "sinks":
      return name === undefined ? <Sinks /> : <SinkPage name={name} />;
    case "sources":
      return name === undefined ? <Sources /> : <SourcePage name={name} />;
    case "tenants":
      return name === undefined ? <Tenants /> : <TenantPage name={name} />;
    case "traces":
      return name === undefined ? <Traces /> : <TracePage id={name} />;
    case "logs":
      return <Logs />;
    case "metrics":
      return <Metrics />;
    case "tap":
      return <Tap />;
    case "rejects":
      return <Rejects />;
    case "journal":
      return <Journal />;
    case "memory":
      return <Memory />;
    case "files":
      return <Files />;
    case "agents":
      return <Agents />;
    case "configuration":
      return <Configuration />;
    default:
      return <NotFound />;
  }
}

export function NotFound() {
  return (
    <>
      <h1 tabIndex={-1}>Not found</h1>
      <Empty title="There is no such page.">
        <a href={link("overview")}>Back to the overview</a>
      </Empty>
    </>
  );
}

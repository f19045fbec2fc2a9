import { Empty } from "../ui/card";
import { link } from "../router";
import { Flow } from "./flow/flow";
import { Overview } from "./overview/overview";
import { SinkPage } from "./sinks/sink";
import { Sinks } from "./sinks/sinks";
import { SourcePage } from "./sources/source";
import { Sources } from "./sources/sources";

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

// The effective configuration; a new one is tried, and the file is read again.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { getConfiguration, type Configuration as Effective } from "../../data/configuration";
import { poll } from "../../data/poll";
import { askForSession, session } from "../../data/session";
import { part, returns } from "../../data/store";
import { bytes } from "../../format/bytes";
import { harmless } from "../../format/text";
import { Card, Empty, PageHead } from "../../ui/card";
import { Copy } from "../../ui/copy";
import { Table } from "../../ui/table";
import { DECLARED } from "../memory";
import { CheckCard } from "./check";
import { ReloadButton } from "./reload";
import { Yaml } from "./yaml";

const declared = part((status) => status.memory.declared, []);

/** How long after a failure it is asked for again. */
const AGAIN_MS = 5_000;

type Answer = { kind: "asked" } | { kind: "missing"; why: string } | { kind: "here"; configuration: Effective };

export function Configuration() {
  const answer = useSignal<Answer>({ kind: "asked" });
  const ask = async (): Promise<boolean> => {
    const got = await getConfiguration();
    if (got.ok) answer.value = { kind: "here", configuration: got.value };
    // What is here is shown until there is something newer.
    else if (answer.peek().kind !== "here") answer.value = { kind: "missing", why: got.status === 404 ? "" : got.message };
    return got.ok || got.status === 404;
  };
  useEffect(() => {
    const ended = new AbortController();
    void poll(async () => (await ask()) && ended.abort(), AGAIN_MS, ended.signal);
    void askForSession();
    return () => ended.abort();
  }, [returns.value]);
  const { value } = answer;
  return (
    <>
      <PageHead title="Configuration" aside={session.value?.operator && value.kind === "here" && <ReloadButton done={() => void ask()} />}>
        {value.kind === "here" ? fileOf(value.configuration) : "What this gateway runs with."}
      </PageHead>
      {value.kind === "missing" && <Missing why={value.why} />}
      {value.kind === "here" && <Shown configuration={value.configuration} />}
    </>
  );
}

const fileOf = ({ file }: Effective) => (file === null ? "No file: every setting has its default." : <>From <code>{harmless(file)}</code>, with defaults filled in and secrets masked.</>);

function Missing({ why }: { why: string }) {
  return (
    <Card title="Not available">
      <Empty title={why === "" ? "This version does not show its configuration here." : "The gateway did not give its configuration."}>
        {why === "" ? (
          <>
            On the machine itself, <code>tidegate check FILE</code> reports all errors of a file, and <code>tidegate plan</code> prints the memory that it needs.
          </>
        ) : (
          harmless(why)
        )}
      </Empty>
    </Card>
  );
}

function Shown({ configuration }: { configuration: Effective }) {
  const lines = declared.value;
  const overhead = lines.reduce((all, line) => all + line.declared, 0);
  return (
    <>
      <Card title="Effective" aside={<Copy text={configuration.text} what="the configuration" />}>
        <Yaml text={configuration.text} label="Effective configuration" />
      </Card>
      {configuration.file !== null && <CheckCard />}
      {lines.length > 0 && (
        <Card title="Memory plan" note={`${bytes(overhead)} for everything but payload`}>
          <Table caption="Declared memory" columns={DECLARED.slice(0, 4)} rows={lines} id={(line) => `${line.owner} ${line.what}`} />
        </Card>
      )}
    </>
  );
}

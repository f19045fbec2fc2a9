// The configured file is checked: all errors at once, and what would change.
import { useSignal } from "@preact/signals";
import { postJson } from "../../data/request";
import { askForSession, session } from "../../data/session";
import { harmless, sentence } from "../../format/text";
import { Card } from "../../ui/card";
import { Table } from "../../ui/table";

interface Problem {
  line?: number;
  column?: number;
  message: string;
  excerpt?: string;
  suggestion?: string;
}

interface Change {
  what: string;
  effect: "reload" | "restart";
}

interface Checked {
  ok: boolean;
  message: string;
  errors: Problem[];
  warnings: string[];
  changes: Change[];
}

type Result = { kind: "none" } | { kind: "busy" } | { kind: "failed"; why: string } | { kind: "checked"; checked: Checked };

export function CheckCard() {
  const result = useSignal<Result>({ kind: "none" });
  const check = async (): Promise<void> => {
    result.value = { kind: "busy" };
    await askForSession();
    const answer = await postJson<Checked>("/console/check", "", "text/plain", session.value?.token ?? "");
    if (answer.ok) result.value = { kind: "checked", checked: answer.value };
    else result.value = { kind: "failed", why: answer.status === 404 ? "This version checks no configuration here: run `tidegate check FILE`." : answer.message };
  };
  const { value } = result;
  return (
    <Card title="Check the file" note="Reads the file as it is now, and compares it with what is in effect. Nothing is changed by that.">
      <div class="buttons">
        <button type="button" class="button main" disabled={value.kind === "busy"} onClick={() => void check()}>
          Check
        </button>
      </div>
      <div aria-live="polite">
        {value.kind === "failed" && <p class="say bad">{harmless(value.why)}</p>}
        {value.kind === "checked" && <Verdict checked={value.checked} />}
      </div>
    </Card>
  );
}

function Verdict({ checked }: { checked: Checked }) {
  return (
    <>
      <p class={checked.ok ? "say verdict good" : "say verdict bad"}>{sentence(checked.message)}</p>
      {checked.errors.map((problem, index) => (
        <Found key={index} problem={problem} tone="bad" />
      ))}
      {checked.warnings.map((message, index) => (
        <Found key={index} problem={{ message }} tone="warn" />
      ))}
      {checked.changes.length > 0 && (
        <Table
          caption="Changes"
          columns={[
            { title: "Setting", head: true, cell: (change) => <code>{harmless(change.what)}</code> },
            { title: "Takes effect", cell: (change) => (change.effect === "restart" ? <span class="warn">after a restart</span> : "with a reload") },
          ]}
          rows={checked.changes}
          id={(change) => change.what}
        />
      )}
    </>
  );
}

function Found({ problem, tone }: { problem: Problem; tone: string }) {
  const place = problem.line === undefined ? "" : `line ${problem.line}${problem.column === undefined ? "" : `, column ${problem.column}`}`;
  return (
    <div class={`error-box ${tone}`}>
      {place !== "" && <h3>{place}</h3>}
      <p>{harmless(problem.message)}</p>
      {problem.excerpt && <pre class="excerpt" tabIndex={0}>{harmless(problem.excerpt)}</pre>}
      {problem.suggestion && <p>{harmless(problem.suggestion)}</p>}
    </div>
  );
}

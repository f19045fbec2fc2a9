// A new configuration is pasted and checked: all errors at once, and what would change.
import { useSignal } from "@preact/signals";
import { postJson } from "../../data/request";
import { askForSession, session } from "../../data/session";
import { plural } from "../../format/count";
import { harmless } from "../../format/text";
import { Card } from "../../ui/card";
import { Table } from "../../ui/table";

interface Problem {
  line: number | null;
  column: number | null;
  message: string;
  excerpt: string | null;
  suggestion?: string | null;
}

interface Change {
  what: string;
  effect: string;
  from: string | null;
  to: string | null;
}

interface Checked {
  ok: boolean;
  errors: Problem[];
  warnings: (Problem | string)[];
  changes: Change[];
}

type Result = { kind: "none" } | { kind: "busy" } | { kind: "failed"; why: string } | { kind: "checked"; checked: Checked };

export function CheckCard({ text }: { text: string }) {
  const draft = useSignal("");
  const result = useSignal<Result>({ kind: "none" });
  const check = async (): Promise<void> => {
    result.value = { kind: "busy" };
    await askForSession();
    const answer = await postJson<Checked>("/console/check", draft.value, "application/yaml", session.value?.token ?? "");
    if (answer.ok) result.value = { kind: "checked", checked: answer.value };
    else result.value = { kind: "failed", why: answer.status === 404 ? "This version checks no configuration here: run `tidegate check FILE`." : answer.message };
  };
  const { value } = result;
  return (
    <Card title="Check another" note="Nothing is changed by a check.">
      <form
        class="check"
        onSubmit={(event) => {
          event.preventDefault();
          void check();
        }}
      >
        <label for="draft">Configuration as YAML</label>
        <textarea id="draft" rows={10} spellcheck={false} autocomplete="off" value={draft} onInput={(event) => (draft.value = event.currentTarget.value)} />
        <div class="buttons">
          <button type="submit" class="main" disabled={draft.value.trim() === "" || value.kind === "busy"}>
            Check
          </button>
          <button type="button" onClick={() => (draft.value = text)}>
            Begin with the effective one
          </button>
        </div>
      </form>
      <div aria-live="polite">
        {value.kind === "failed" && <p class="say bad">{harmless(value.why)}</p>}
        {value.kind === "checked" && <Verdict checked={value.checked} />}
      </div>
    </Card>
  );
}

function Verdict({ checked }: { checked: Checked }) {
  const warnings = checked.warnings.map((warning) => (typeof warning === "string" ? { line: null, column: null, message: warning, excerpt: null } : warning));
  return (
    <>
      <p class={checked.ok ? "say verdict good" : "say verdict bad"}>
        {checked.ok ? "It is valid." : `It has ${plural(checked.errors.length, "error")}.`}
        {checked.ok && checked.changes.length === 0 && " Nothing would change."}
      </p>
      {[...checked.errors.map((problem) => ({ problem, tone: "bad" })), ...warnings.map((problem) => ({ problem, tone: "warn" }))].map(({ problem, tone }, index) => (
        <Found key={index} problem={problem} tone={tone} />
      ))}
      {checked.changes.length > 0 && (
        <Table
          caption="Changes"
          columns={[
            { title: "Setting", head: true, cell: (change) => <code>{harmless(change.what)}</code> },
            { title: "From", cell: (change) => harmless(change.from ?? "–") },
            { title: "To", cell: (change) => harmless(change.to ?? "–") },
            { title: "Effect", cell: (change) => <span class={change.effect.includes("restart") ? "warn" : ""}>{change.effect}</span> },
          ]}
          rows={checked.changes}
          id={(change) => change.what}
        />
      )}
    </>
  );
}

function Found({ problem, tone }: { problem: Problem; tone: string }) {
  const place = problem.line === null ? "" : `line ${problem.line}${problem.column === null ? "" : `, column ${problem.column}`}`;
  return (
    <div class={`error-box ${tone}`}>
      {place !== "" && <h3>{place}</h3>}
      <p>{harmless(problem.message)}</p>
      {problem.excerpt !== null && problem.excerpt !== "" && <pre class="excerpt" tabIndex={0}>{harmless(problem.excerpt)}</pre>}
      {problem.suggestion && <p>{harmless(problem.suggestion)}</p>}
    </div>
  );
}

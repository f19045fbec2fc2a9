// What the gateway says of its configuration file: after a check, and after a reload.
import { harmless, sentence } from "../../format/text";
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

export interface Report {
  ok: boolean;
  message: string;
  errors: Problem[];
  warnings: string[];
  changes: Change[];
}

/** The whole report; of a reload, if the file was reloaded. */
export function Verdict({ report, reloaded = false }: { report: Report; reloaded?: boolean }) {
  return (
    <>
      <p class={report.ok ? "say verdict good" : "say verdict bad"}>{harmless(sentence(report.message))}</p>
      {report.errors.map((problem, index) => (
        <Found key={index} problem={problem} tone="bad" />
      ))}
      {report.warnings.map((message, index) => (
        <Found key={index} problem={{ message }} tone="warn" />
      ))}
      {report.changes.length > 0 && (
        <Table
          caption="Changes"
          columns={[
            { title: "Setting", head: true, cell: (change) => <code>{harmless(change.what)}</code> },
            { title: "Takes effect", cell: (change) => (change.effect === "restart" ? <span class="warn">after a restart</span> : reloaded ? "now" : "with a reload") },
          ]}
          rows={report.changes}
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

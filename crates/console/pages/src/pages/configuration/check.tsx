// The configured file is checked: all errors at once, and what would change.
import { useSignal } from "@preact/signals";
import { postAsSession } from "../../data/session";
import { harmless } from "../../format/text";
import { Card } from "../../ui/card";
import { Verdict, type Report } from "./report";

type Result = { kind: "none" } | { kind: "busy" } | { kind: "failed"; why: string } | { kind: "checked"; report: Report };

export function CheckCard() {
  const result = useSignal<Result>({ kind: "none" });
  const check = async (): Promise<void> => {
    result.value = { kind: "busy" };
    const answer = await postAsSession<Report>("/console/check", "", "text/plain");
    if (answer.ok) result.value = { kind: "checked", report: answer.value };
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
        {value.kind === "checked" && <Verdict report={value.report} />}
      </div>
    </Card>
  );
}

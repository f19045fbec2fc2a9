// How to send data, while there is none: what `tidegate connect` prints.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { getInstructions, getKinds, type Instructions, type SenderKind, type Snippet } from "../../data/connect";
import { harmless, sentence } from "../../format/text";
import { Card } from "../../ui/card";
import { Copy } from "../../ui/copy";
import { Field } from "../../ui/field";
import { Ticked } from "../../ui/ticked";

/** The kind that is shown first. */
const FIRST = "otel-python";

export function GettingStarted() {
  const kinds = useSignal<SenderKind[]>([]);
  const chosen = useSignal(FIRST);
  const shown = useSignal<Instructions>({});
  const failed = useSignal<string | undefined>(undefined);
  useEffect(() => {
    const left = new AbortController();
    void getKinds(left.signal).then((answer) => {
      if (answer.ok) kinds.value = answer.value;
      else if (!left.signal.aborted) failed.value = answer.message;
    });
    return () => left.abort();
  }, []);
  const kind = chosen.value;
  useEffect(() => {
    const left = new AbortController();
    void getInstructions(kind, left.signal).then((answer) => {
      if (left.signal.aborted) return;
      if (!answer.ok) failed.value = answer.message;
      shown.value = answer.ok ? answer.value : {};
    });
    return () => left.abort();
  }, [kind]);
  const { snippets = [], missing } = shown.value;
  return (
    <Card title="Nothing has arrived yet" class="started">
      <Field label="Send to this gateway from">
        <select value={kind} onChange={(event) => (chosen.value = event.currentTarget.value)}>
          {kinds.value.map(({ kind, title, received }) => (
            <option key={kind} value={kind}>
              {received ? title : `${title} (not received yet)`}
            </option>
          ))}
        </select>
      </Field>
      <p class="say bad" role="status">
        {failed.value === undefined ? "" : `${harmless(failed.value)}: load the page again.`}
      </p>
      {missing && <Pasted snippet={{ title: `\`${missing.setting}\` is not set: add these lines to the configuration`, file: null, content: missing.lines, notes: [missing.note] }} />}
      {snippets.map((snippet) => (
        <Pasted key={snippet.title} snippet={snippet} />
      ))}
    </Card>
  );
}

/** A text to paste, with what to know about it. */
function Pasted({ snippet: { title, file, content, notes } }: { snippet: Snippet }) {
  return (
    <section class="paste">
      <h3>
        <Ticked>{file === null ? sentence(title) : `${file}: ${title}`}</Ticked>
      </h3>
      <div>
        <pre tabIndex={0}>{content}</pre>
        <Copy text={content} what={title} />
      </div>
      {notes
        .filter((note) => note !== "")
        .map((note) => (
          <p key={note}>
            <Ticked>{sentence(note)}</Ticked>
          </p>
        ))}
    </section>
  );
}

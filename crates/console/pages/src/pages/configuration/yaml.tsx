// YAML with keys, comments and values apart by colour.

interface Piece {
  kind: "key" | "comment" | "secret" | "text";
  text: string;
}

const KEY = /^(\s*(?:- )?)([\w.\-/"']+)(:)(\s.*|)$/;

/** A line in pieces. What is not understood is text. */
export function pieces(line: string): Piece[] {
  if (/^\s*#/.test(line)) return [{ kind: "comment", text: line }];
  const match = KEY.exec(line);
  if (!match) return [{ kind: "text", text: line }];
  const [, indent = "", key = "", colon = "", rest = ""] = match;
  const comment = /\s#.*$/.exec(rest);
  const value = comment ? rest.slice(0, comment.index) : rest;
  const all: Piece[] = [
    { kind: "text", text: indent },
    { kind: "key", text: key + colon },
    { kind: /^\s*["']?(\*{3,}|<[^>]*>)/.test(value) ? "secret" : "text", text: value },
  ];
  if (comment) all.push({ kind: "comment", text: comment[0] });
  return all;
}

export function Yaml({ text, label }: { text: string; label: string }) {
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={label}>
      {text.split("\n").map((line, index) => (
        <span key={index}>
          {pieces(line).map((piece, place) => (piece.kind === "text" ? piece.text : <span key={place} class={`yaml-${piece.kind}`}>{piece.text}</span>))}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

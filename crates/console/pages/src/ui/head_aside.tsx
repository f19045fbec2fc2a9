import type { Tone } from "../data/health";
import { link } from "../router";
import { Badge } from "./badge";

/** How it is doing, and the way to what passes it. */
export function HeadAside({ tone, word, point }: { tone: Tone; word: string; point: string }) {
  return (
    <div class="buttons">
      <a class="button" href={link("tap", undefined, { at: point })}>
        Tap
      </a>
      <Badge tone={tone}>{word}</Badge>
    </div>
  );
}

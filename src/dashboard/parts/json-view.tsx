/** A value as JSON, with its numbers as the server wrote them. Long ones are folded. */
import { shownJson } from "../server/exact-json.ts";
import { Copy } from "./command.tsx";
import { Scroll } from "./scroll.tsx";

const FOLDED_LENGTH = 600;

export function Json({ value, label }: { value: unknown; label: string }) {
  return <Folded text={shownJson(value)} label={label} />;
}

export function Folded({ text, label }: { text: string; label: string }) {
  if (text.length <= FOLDED_LENGTH) return <Pre text={text} label={label} />;
  return (
    <details>
      <summary>
        {label}: {text.slice(0, 80).replace(/\s+/g, " ")}…
      </summary>
      <Pre text={text} label={label} />
    </details>
  );
}

export function Pre({ text, label }: { text: string; label: string }) {
  return (
    <div class="pre">
      <Scroll label={label}>
        <pre>{text}</pre>
      </Scroll>
      <div class="corner">
        <Copy text={text} />
      </div>
    </div>
  );
}

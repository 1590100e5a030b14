/** A command line to copy. */

import { useState } from "preact/hooks";
import { onEvent } from "../server/on-event.ts";

export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <Copy text={text} />
    </div>
  );
}

const SAID_MS = 1500;

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [said, say] = useState<string>();
  const copy = async () => {
    const isDone = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    // Browsers have no clipboard for pages without TLS, but for those on the same machine.
    say(isDone ? "Copied" : "Select it");
    setTimeout(() => say(undefined), SAID_MS);
  };
  return (
    <button type="button" class="plain small" onClick={onEvent(copy)} aria-live="polite">
      {said ?? label}
    </button>
  );
}

/** A form that sends a request to an API, and shows the response as it came. */

import { useState } from "preact/hooks";
import { bytes } from "../../format/numbers.ts";
import { duration } from "../../format/times.ts";
import { Command } from "../../parts/command.tsx";
import { Pre } from "../../parts/json-view.tsx";
import { ErrorNote } from "../../parts/notes.tsx";
import { Status } from "../../parts/status.tsx";
import { onEvent } from "../../server/on-event.ts";
import { asError } from "../../server/problem.ts";
import { root } from "../../server/root.ts";
import type { DescribedApi } from "../../shapes.ts";

interface Answer {
  status: number;
  text: string;
  type: string;
  seconds: number;
}

const SHOWN_BYTES = 256 * 1024;

export function TryForm({ api }: { api: DescribedApi }) {
  const [body, setBody] = useState("{}");
  const [answer, setAnswer] = useState<Answer>();
  const [error, setError] = useState<Error>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      setAnswer(await predict(api.path, body));
    } catch (thrown) {
      setError(asError(thrown));
    }
    setBusy(false);
  };
  return (
    <form class="try" onSubmit={onEvent(submit)}>
      <label class="field">
        Request body (JSON)
        <textarea
          rows={8}
          spellcheck={false}
          value={body}
          onInput={(event) => setBody(event.currentTarget.value)}
        />
      </label>
      <Command
        text={`curl ${api.endpoint} -H 'Content-Type: application/json' -d '${body.replaceAll("'", `'\\''`)}'`}
      />
      <div class="buttons">
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Waiting…" : "Send"}
        </button>
      </div>
      {error && <ErrorNote error={error} />}
      <div aria-live="polite">{answer && <Shown answer={answer} />}</div>
    </form>
  );
}

function Shown({ answer: { status, text, type, seconds } }: { answer: Answer }) {
  return (
    <>
      <p>
        <Status of={status < 400 ? "ok" : "error"}>{status}</Status> in {duration(seconds)},{" "}
        {bytes(new Blob([text]).size)} <span class="quiet">{type}</span>
      </p>
      <Pre text={text.slice(0, SHOWN_BYTES)} label="response" />
    </>
  );
}

async function predict(path: string, body: string): Promise<Answer> {
  const startMs = performance.now();
  const response = await fetch(root + path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-quern-dashboard": "1" },
    body,
    credentials: "same-origin",
  });
  const text = await response.text();
  const seconds = (performance.now() - startMs) / 1000;
  return {
    status: response.status,
    text: pretty(text),
    type: response.headers.get("content-type") ?? "",
    seconds,
  };
}

/** Numbers keep their digits: the text is indented, and not made anew. */
function pretty(text: string): string {
  return text.length > 2000 || text.includes("\n") ? text : text.trim();
}

/** The output of a job: where it is, and its first rows. */

import { useState } from "preact/hooks";
import { bytes, whole } from "../../format/numbers.ts";
import { Facts } from "../../parts/facts.tsx";
import { Pre } from "../../parts/json-view.tsx";
import { ErrorNote } from "../../parts/notes.tsx";
import { onEvent } from "../../server/on-event.ts";
import { asError } from "../../server/problem.ts";
import { send, withQuery } from "../../server/request.ts";
import { root } from "../../server/root.ts";
import type { JobEnvelope } from "../../shapes.ts";

const FIRST_BATCHES = "10";
const SHOWN_LENGTH = 20_000;

export function Results({
  path,
  output,
}: {
  path: string;
  output: NonNullable<JobEnvelope["job_status"]["output"]>;
}) {
  const [text, setText] = useState<string>();
  const [error, setError] = useState<Error>();
  const read = () =>
    send(withQuery(`${path}/results`, { end: FIRST_BATCHES }))
      .then((response) => response.text())
      .then(setText)
      .catch((thrown) => setError(asError(thrown)));
  return (
    <>
      <Facts
        rows={[
          ["Below", <code key="path">{output.path}</code>],
          ["Rows", whole(output.rows)],
          ["Parts", whole(output.parts)],
          ["Size", bytes(output.bytes)],
          ["Batches", whole(output.batches)],
          ["Complete", output.has_manifest ? "yes: the manifest is written" : "not yet"],
        ]}
      />
      <div class="buttons">
        <button type="button" onClick={onEvent(read)}>
          Show the first rows
        </button>
        <code>curl {`${location.origin}${root}${path}/results`}</code>
      </div>
      {error && <ErrorNote error={error} />}
      {text !== undefined && <Pre text={text.slice(0, SHOWN_LENGTH) || "no row yet"} label="first rows" />}
    </>
  );
}

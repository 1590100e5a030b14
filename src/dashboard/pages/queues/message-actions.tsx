/** Runs the selected messages again, or removes them: those that are ticked, or all that match the search. */

import { useState } from "preact/hooks";
import { Confirm } from "../../actions/dialog.tsx";
import { say } from "../../actions/toasts.tsx";
import { counted } from "../../format/numbers.ts";
import { ErrorNote } from "../../parts/notes.tsx";
import { onEvent } from "../../server/on-event.ts";
import { asError } from "../../server/problem.ts";
import { ask } from "../../server/request.ts";
import { mayAct } from "../../session/session.ts";
import type { Selection } from "../../shapes.ts";
import { actOn, outcomeText } from "../jobs/bulk-actions.tsx";

const ACTIONS = {
  redrive: {
    label: "Run again",
    about: "Their batches run again, in a new round of their jobs. The messages leave the queue.",
  },
  remove: { label: "Remove", about: "The messages are gone. Their batches stay failed." },
} as const;

interface MessageActionsProps {
  queue: string;
  search: string;
  chosen: ReadonlySet<string>;
  after: () => void;
}

export function MessageActions({ queue, search, chosen, after }: MessageActionsProps) {
  const [asked, setAsked] = useState<{ action: keyof typeof ACTIONS; selection: Selection }>();
  const [error, setError] = useState<Error>();
  if (!mayAct.value) return null;
  const what = chosen.size > 0 ? `${chosen.size} selected` : search === "" ? "all" : "all that match";
  const choose = (action: keyof typeof ACTIONS) => {
    const messages = { queue, ...(chosen.size > 0 ? { ids: [...chosen] } : search === "" ? {} : { search }) };
    return ask<Selection>("/-/selections", { method: "POST", body: { messages } }).then(
      (selection) => setAsked({ action, selection }),
      (thrown) => setError(asError(thrown)),
    );
  };
  const about = asked && ACTIONS[asked.action];
  return (
    <>
      <div class="buttons">
        {(["redrive", "remove"] as const).map((action) => (
          <button key={action} type="button" onClick={onEvent(() => choose(action))}>
            {ACTIONS[action].label} ({what})…
          </button>
        ))}
      </div>
      {error && <ErrorNote error={error} />}
      {asked && about && (
        <Confirm
          title={`${about.label}: ${counted(asked.selection.count, "message")}?`}
          action={`${about.label} (${asked.selection.count})`}
          {...(asked.action === "remove" ? { isDestructive: true } : {})}
          onConfirm={async () => {
            say(outcomeText(await actOn(asked.selection, asked.action), "message"));
            after();
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>{about.about}</p>
        </Confirm>
      )}
    </>
  );
}

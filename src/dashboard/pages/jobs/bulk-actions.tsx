/**
 * Actions on all jobs that match. The server first counts and freezes what matches; the dialog shows that number, and
 * the action changes exactly those.
 */

import { useState } from "preact/hooks";
import { Confirm } from "../../actions/dialog.tsx";
import { say } from "../../actions/toasts.tsx";
import { counted, whole } from "../../format/numbers.ts";
import { ErrorNote } from "../../parts/notes.tsx";
import { onEvent } from "../../server/on-event.ts";
import { asError } from "../../server/problem.ts";
import { ask, segment } from "../../server/request.ts";
import { mayAct } from "../../session/session.ts";
import type { Selection, SelectionOutcome } from "../../shapes.ts";

type Filter = Record<string, string | undefined>;
interface BulkAction {
  id: string;
  label: string;
  about: string;
  isDestructive?: boolean;
  /** Whether it can do anything in jobs of this status. */
  suits: (status: string | undefined) => boolean;
}

const IN_PROGRESS = new Set(["status_running", "status_enqueuing"]);
const isOpen = (status: string | undefined) => status === undefined || IN_PROGRESS.has(status);
const isEnded = (status: string | undefined) => status === undefined || !IN_PROGRESS.has(status);

const JOB_ACTIONS: readonly BulkAction[] = [
  {
    id: "stop",
    label: "Stop",
    about: "Batches that have not begun will not run. Jobs that have ended are left as they are.",
    isDestructive: true,
    suits: isOpen,
  },
  { id: "pause", label: "Pause", about: "No new batch begins. Batches in hand end.", suits: isOpen },
  { id: "unpause", label: "Unpause", about: "Paused jobs continue.", suits: isOpen },
  {
    id: "redrive",
    label: "Run failed batches again",
    about: "Jobs that ended with failed batches run these again, in a new round.",
    suits: (status) => isEnded(status) && status !== "status_succeeded",
  },
  {
    id: "resume",
    label: "Resume",
    about: "Jobs that ended before all their batches were settled go on.",
    suits: (status) => isEnded(status) && status !== "status_succeeded",
  },
];

export function BulkActions({ filter, count, after }: { filter: Filter; count: number; after: () => void }) {
  const [asked, setAsked] = useState<{ action: BulkAction; selection: Selection }>();
  const [error, setError] = useState<Error>();
  if (!mayAct.value) return null;
  const choose = async (action: BulkAction) => {
    setError(undefined);
    try {
      setAsked({ action, selection: await selectJobs(filter) });
    } catch (thrown) {
      setError(asError(thrown));
    }
  };
  return (
    <>
      <fieldset class="buttons" aria-label={`actions on all ${whole(count)} jobs`}>
        <span class="quiet">With all that match:</span>
        {JOB_ACTIONS.filter(({ suits }) => suits(filter.status)).map((action) => (
          <button key={action.id} type="button" onClick={onEvent(() => choose(action))}>
            {action.label}…
          </button>
        ))}
      </fieldset>
      {error && <ErrorNote error={error} />}
      {asked && (
        <Confirm
          title={`${asked.action.label}: ${counted(asked.selection.count, "job")}?`}
          action={`${asked.action.label} (${whole(asked.selection.count)})`}
          {...(asked.action.isDestructive ? { isDestructive: true } : {})}
          onConfirm={async () => {
            say(outcomeText(await actOn(asked.selection, asked.action.id), "job"));
            after();
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>{asked.action.about}</p>
          <p class="quiet">Exactly the jobs that were counted now are changed, and none that come later.</p>
        </Confirm>
      )}
    </>
  );
}

function selectJobs({ status, ...filter }: Filter): Promise<Selection> {
  const jobs = { ...filter, ...(status === undefined ? {} : { status: [status] }) };
  return ask("/-/selections", { method: "POST", body: { jobs } });
}

export function actOn({ selection_id }: Selection, action: string): Promise<SelectionOutcome> {
  return ask(`/-/selections/${segment(selection_id)}/${action}`, { method: "POST" });
}

/** What became of a selection, in a sentence. */
export function outcomeText({ changed, skipped, skipped_count }: SelectionOutcome, one: string): string {
  const done = `${counted(changed, one)} changed`;
  return skipped_count === 0
    ? done
    : `${done}, ${whole(skipped_count)} left as they are: ${skipped[0]?.reason ?? ""}`;
}

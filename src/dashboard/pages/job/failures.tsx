/** What failed, grouped by error, each group with its batches, items and tracebacks, and the button that runs it again. */
import { useState } from "preact/hooks";
import { Actions } from "../../actions/actions.tsx";
import { counted, whole } from "../../format/numbers.ts";
import { Pre } from "../../parts/json-view.tsx";
import { Empty, Loaded } from "../../parts/notes.tsx";
import { ask, withQuery } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import type { FailureGroup, FailureGroups, JobEnvelope } from "../../shapes.ts";
import { FailedBatches } from "./failed-batches.tsx";
import { LastRound } from "./rounds.tsx";

interface FailuresProps {
  path: string;
  status: JobEnvelope["job_status"];
  version: string;
  again: () => void;
}

export function Failures({ path, status, version, again }: FailuresProps) {
  const groups = useResource<FailureGroups>(withQuery(`${path}/failures`, { group_by: "error" }), {
    version,
  });
  const isOver = status.end_time !== undefined;
  return (
    <>
      <LastRound path={path} version={version} />
      <Loaded resource={groups} lines={4}>
        {({ groups: found }) =>
          found.length === 0 ? (
            <Empty title="No batch has failed" />
          ) : (
            <>
              {!isOver && <p class="quiet">Failed batches can be run again once the job has ended.</p>}
              <ol class="groups">
                {found.map((group) => (
                  <Group
                    key={group.first_batch_index}
                    group={group}
                    path={path}
                    isOver={isOver}
                    again={again}
                  />
                ))}
              </ol>
            </>
          )
        }
      </Loaded>
    </>
  );
}

interface GroupProps {
  group: FailureGroup;
  path: string;
  isOver: boolean;
  again: () => void;
}

function Group({ group, path, isOver, again }: GroupProps) {
  const { batches, error, common_message: common, first_batch_index } = group;
  const [isOpen, setOpen] = useState(false);
  const name = nameOf(group);
  const redrive = async () => {
    await ask(`${path}/redrive`, { method: "POST", body: { like: first_batch_index } });
    return { message: `a new round runs these ${counted(batches, "batch", "batches")} again` };
  };
  return (
    <li>
      <header>
        <h2>
          {error.type}
          {common !== "" && (
            <>
              : <span class="message">{common}</span>
            </>
          )}
        </h2>
        <span class="count">{counted(batches, "batch", "batches")}</span>
        {isOver && (
          <span class="buttons">
            <Actions
              after={again}
              actions={[
                {
                  label: "Run these again",
                  of: name,
                  about: `A new round of the job runs the ${counted(batches, "batch", "batches")} with this error again. Other failed batches stay as they are.`,
                  run: redrive,
                },
              ]}
            />
          </span>
        )}
      </header>
      {common !== error.message && (
        <p class="quiet">
          such as batch {whole(first_batch_index)}: {error.message}
        </p>
      )}
      <details>
        <summary>
          Traceback<span class="hidden"> of {name}</span>
        </summary>
        <Pre text={error.traceback} label={`traceback of ${name}`} />
      </details>
      <button type="button" class="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Hide items" : "Show items"}
        <span class="hidden"> of {name}</span>
      </button>
      {isOpen && <FailedBatches path={path} like={first_batch_index} />}
    </li>
  );
}

const NAME_LENGTH = 80;

/** One line that tells a group from the others, also for those who hear the names of its buttons only. */
function nameOf({ error: { type }, common_message: common }: FailureGroup): string {
  const line = (common === "" ? type : `${type}: ${common}`).replaceAll(/\s+/g, " ");
  return line.length > NAME_LENGTH ? `${line.slice(0, NAME_LENGTH - 1)}…` : line;
}

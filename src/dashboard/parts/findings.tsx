/** What `explain` says: causes with their evidence and what to do, the most important first. */
import { useResource } from "../server/use-resource.ts";
import type { Explanation } from "../shapes.ts";
import { Command } from "./command.tsx";
import { Loaded } from "./notes.tsx";
import { Status } from "./status.tsx";
import { Words } from "./words.tsx";

interface FindingsProps {
  path: string;
  version?: unknown;
  isOver?: boolean;
}

const REFRESH_MS = 10_000;
/** The causes that are none. */
const WELL = new Set(["all_well", "job_succeeded"]);

/** `isOver`: nothing changes any more, so it is read once. Of a job with a million failures it takes the server a second. */
export function Findings({ path, version, isOver = false }: FindingsProps) {
  const explanation = useResource<Explanation>(path, { version, everyMs: isOver ? undefined : REFRESH_MS });
  return (
    <Loaded resource={explanation} lines={1}>
      {({ summary, findings }) => (
        <div class="findings">
          {summary !== findings[0]?.title && (
            <p class="lead">
              <Words text={summary} />
            </p>
          )}
          {findings.map(({ cause, severity, title, evidence, cure, command }) => (
            <article key={cause + title} class={`finding ${severity}`}>
              <h2>
                <Status of={WELL.has(cause) ? "ok" : severity}>
                  <Words text={title} />
                </Status>
              </h2>
              {evidence.length > 0 && (
                <ul>
                  {evidence.map((line) => (
                    <li key={line}>
                      <Words text={line} />
                    </li>
                  ))}
                </ul>
              )}
              {cure !== "" && (
                <p>
                  <span class="quiet">What to do: </span>
                  <Words text={cure} />
                </p>
              )}
              {command && <Command text={command} />}
            </article>
          ))}
        </div>
      )}
    </Loaded>
  );
}

/** What `explain` says: causes with their evidence and what to do, the most important first. */
import { address, pageUrl } from "../address/address.ts";
import { useResource } from "../server/use-resource.ts";
import type { Explanation } from "../shapes.ts";
import { Command } from "./command.tsx";
import { Loaded } from "./notes.tsx";
import { type Place, placeOf } from "./place-of.ts";
import { Status } from "./status.tsx";
import { Said, Words } from "./words.tsx";

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
      {(value) => <FindingList explanation={value} />}
    </Loaded>
  );
}

interface FindingListProps {
  explanation: Explanation;
  /** The summary stands above the findings, unless it is the only one's title. */
  hasLead?: boolean;
}

export function FindingList({ explanation: { summary, findings }, hasLead = true }: FindingListProps) {
  return (
    <div class="findings">
      {hasLead && summary !== findings[0]?.title && (
        <p class="lead">
          <Said text={summary} />
        </p>
      )}
      {findings.map((finding) => (
        <OneFinding key={finding.cause + finding.title} finding={finding} />
      ))}
    </div>
  );
}

/** The page that is open says it already. */
function isHere({ segments, query }: Place): boolean {
  return query === undefined && address.value.segments.join("/") === segments.join("/");
}

/** The page of two versions leads back to the time that they explain. */
function comingFrom({ query }: Place): Record<string, string | undefined> {
  return query?.from === undefined ? {} : { at: address.value.query.get("at") ?? undefined };
}

function OneFinding({ finding }: { finding: Explanation["findings"][number] }) {
  const { cause, severity, title, evidence, cure, command } = finding;
  const place = placeOf(command, evidence);
  return (
    <article class={`finding ${severity}`}>
      <h2>
        <Status of={WELL.has(cause) ? "ok" : severity}>
          <Said text={title} />
        </Status>
      </h2>
      {evidence.length > 0 && (
        <ul>
          {evidence.map((line) => (
            <li key={line}>
              <Said text={line} />
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
      {place !== undefined && !isHere(place) && (
        <a href={pageUrl(place.segments, { ...comingFrom(place), ...place.query })}>{place.text}</a>
      )}
      {command && <Command text={command} />}
    </article>
  );
}

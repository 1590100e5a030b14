/** The rounds of a job that was redriven or resumed: when each began and by whom, and what became of its batches. */
import { counted, whole } from "../../format/numbers.ts";
import { Section } from "../../parts/facts.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Status } from "../../parts/status.tsx";
import { Elapsed, Time } from "../../parts/time.tsx";
import { useResource } from "../../server/use-resource.ts";
import type { JobRoundsShown } from "../../shapes.ts";

type Round = JobRoundsShown["rounds"][number];

interface RoundsProps {
  path: string;
  /** Changes with the counts of the job. */
  version: unknown;
}

/** Nothing while there is only one: it is the job. */
export function Rounds(props: RoundsProps) {
  const all = useRounds(props);
  if (all.length < 2) return null;
  return (
    <Section title="Rounds">
      <Scroll label="rounds of the job">
        <table class="rounds">
          <thead>
            <tr>
              <th>Round</th>
              <th>Outcome</th>
              <th class="number">Failed</th>
              <th class="number">Succeeded</th>
              <th class="number">Batches</th>
              <th class="number">Took</th>
              <th>Began</th>
            </tr>
          </thead>
          <tbody>
            {all.map((round) => (
              <Row key={round.round} round={round} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  );
}

/** What has become of the batches that were run again last, in a line. */
export function LastRound(props: RoundsProps) {
  const all = useRounds(props);
  const last = all.at(-1);
  if (all.length < 2 || last?.batches == null) return null;
  const { round, begun_time, ended_time, batches, succeeded, failed } = last;
  return (
    <p>
      Round {round}, begun <Time at={begun_time} />, {ended_time === null ? "runs" : "ran"}{" "}
      {counted(batches, "batch", "batches")}: {whole(succeeded ?? 0)} succeeded, {whole(failed ?? 0)} failed
    </p>
  );
}

function useRounds({ path, version }: RoundsProps): readonly Round[] {
  return useResource<JobRoundsShown>(`${path}/rounds`, { version }).value?.rounds ?? [];
}

function Row({ round }: { round: Round }) {
  const { how, by, by_name, selection, begun_time, ended_time, status, reason } = round;
  const who = by_name ?? by;
  return (
    <tr>
      <td>
        {round.round} {how}
        {who !== null && <span title={by ?? undefined}> by {who}</span>}
        {selection !== null && <div class="small quiet">{selection}</div>}
      </td>
      <td>
        {status === null ? <span class="quiet">not recorded</span> : <Status of={status} />}
        {/* The counts say more than the reason of such an end. */}
        {reason !== null && status !== "status_completed_with_failures" && (
          <div class="small quiet">{reason}</div>
        )}
      </td>
      {[round.failed, round.succeeded, round.batches].map((count, at) => (
        <td key={at} class="number">
          {count === null ? "–" : whole(count)}
        </td>
      ))}
      <td class="number">{status === null ? "–" : <Elapsed from={begun_time} to={ended_time} />}</td>
      <td>
        <Time at={begun_time} />
      </td>
    </tr>
  );
}

/** The progress, the workers and the times of a job. */

import { Progress } from "../../charts/progress.tsx";
import { bytes, rate, whole } from "../../format/numbers.ts";
import { duration } from "../../format/times.ts";
import { Facts } from "../../parts/facts.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Elapsed, Time } from "../../parts/time.tsx";
import type { JobEnvelope, OverviewJob } from "../../shapes.ts";
import { countsOf } from "../jobs/job-counts.ts";

type Status = JobEnvelope["job_status"];

export function JobSummary({ status, row }: { status: Status; row: OverviewJob | undefined }) {
  const { batch_metrics, reason } = status;
  return (
    <>
      <div class="large-progress">
        <Progress {...countsOf(status)} />
      </div>
      {reason?.evidence && <Evidence evidence={reason.evidence} />}
      <Facts
        rows={[
          status.waiting !== undefined && ["Waiting", status.waiting],
          ["Batches left", whole(status.batches_in_queue)],
          ["Failed attempts", whole(batch_metrics.failed)],
          batch_metrics.avg_time_per_batch !== undefined && [
            "Average batch",
            duration(batch_metrics.avg_time_per_batch),
          ],
          row?.batches_per_s !== undefined &&
            row.batches_per_s !== null && ["Batches per second", rate(row.batches_per_s)],
          row?.eta_s !== undefined && row.eta_s !== null && ["Left", `about ${duration(row.eta_s)}`],
          ["Workers", workersText(status)],
          ["Submitted", <Time key="created" at={status.created_time} />],
          status.start_time !== undefined && ["Started", <Time key="start" at={status.start_time} />],
          status.end_time !== undefined && ["Ended", <Time key="end" at={status.end_time} />],
          [
            tookLabel(status),
            <Elapsed key="took" from={status.round_time ?? status.created_time} to={status.end_time} />,
          ],
          status.timeout !== undefined && ["Timeout", duration(status.timeout)],
          status.priority !== undefined && ["Priority", String(status.priority)],
        ]}
      />
    </>
  );
}

/** The duration is that of the last round: nothing ran between two rounds. */
function tookLabel({ round, end_time }: Status): string {
  const verb = end_time === undefined ? "For" : "Took";
  return round === undefined ? verb : `Round ${round} ${verb.toLowerCase()}`;
}

function workersText({ workers, worker_counts }: Status): string {
  if (worker_counts === undefined) return `${workers} requested`;
  const states = Object.entries(worker_counts).filter(([, count]) => count > 0);
  const text = states.map(([state, count]) => `${count} ${state}`).join(", ");
  return `${workers} requested${text === "" ? "" : `: ${text}`}`;
}

/** What is known of the worker that died, and of the batch in its hands. */
function Evidence({ evidence }: { evidence: NonNullable<NonNullable<Status["reason"]>["evidence"]> }) {
  const { batch_index, signal, exit_code, peak_memory_bytes, memory_limit_bytes, last_lines = [] } = evidence;
  return (
    <div class="note bad">
      <Facts
        rows={[
          batch_index !== undefined && ["Batch in hand", whole(batch_index)],
          signal !== undefined && ["Ended by", signal],
          exit_code !== undefined && ["Exit code", String(exit_code)],
          peak_memory_bytes !== undefined && [
            "Peak memory",
            `${bytes(peak_memory_bytes)}${memory_limit_bytes === undefined ? "" : ` of ${bytes(memory_limit_bytes)}`}`,
          ],
        ]}
      />
      {last_lines.length > 0 && (
        <Scroll label="the worker's last output">
          <pre>{last_lines.join("\n")}</pre>
        </Scroll>
      )}
    </div>
  );
}

/** What was asked for when the job was submitted. */
import { Facts } from "../../parts/facts.tsx";
import { Json } from "../../parts/json-view.tsx";
import type { JobEnvelope } from "../../shapes.ts";

export function Submission({ envelope: { job_status, endpoint } }: { envelope: JobEnvelope }) {
  const { queue_dead_letter_queue: letters } = job_status;
  return (
    <>
      <Facts
        rows={[
          ["Endpoint", <code key="endpoint">{endpoint}</code>],
          ["API version", <code key="version">{job_status.api_id}</code>],
          ["Workers", String(job_status.workers)],
          job_status.timeout !== undefined && ["Timeout", `${job_status.timeout} s`],
          [
            "When a batch fails",
            job_status.on_failure === "isolate" ? "find the guilty items" : "the batch fails",
          ],
          letters && ["Dead letter queue", `${letters.arn}, after ${letters.max_receive_count} attempts`],
          ["Batches", String(job_status.total_batch_count ?? "not counted yet")],
        ]}
      />
      <h2>Config</h2>
      <Json value={job_status.config ?? {}} label="config of the job" />
    </>
  );
}

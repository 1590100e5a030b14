/** What can be done with a job now. */
import { Actions } from "../../actions/actions.tsx";
import { ask } from "../../server/request.ts";
import type { JobEnvelope } from "../../shapes.ts";
import { countsOf, isSettled } from "../jobs/job-counts.ts";

interface JobActionsProps {
  path: string;
  status: JobEnvelope["job_status"];
  again: () => void;
}

export function JobActions({ path, status, again }: JobActionsProps) {
  const isOver = status.end_time !== undefined;
  const { failed } = countsOf(status);
  const post = (verb: string, message: string) => async () => {
    await ask(`${path}/${verb}`, { method: "POST" });
    return { message };
  };
  return (
    <Actions
      after={again}
      actions={[
        isOver &&
          failed > 0 && {
            label: "Run failed batches again",
            about: `A new round of this job runs its ${failed} failed batches again. What succeeded stays.`,
            run: post("redrive", "a new round has begun"),
          },
        isOver &&
          !isSettled(status) && {
            label: "Resume",
            about: "A new round of this job runs the batches that are left. What succeeded stays.",
            run: post("resume", "the job goes on"),
          },
        !isOver &&
          status.paused_time === undefined && {
            label: "Pause",
            about:
              "No new batch begins. Batches in hand end. The paused time does not count towards the timeout.",
            run: post("pause", "the job is paused"),
          },
        !isOver &&
          status.paused_time !== undefined && {
            label: "Unpause",
            about: "The job continues.",
            run: post("unpause", "the job continues"),
          },
        !isOver && {
          label: "Stop",
          isDestructive: true,
          about: `Batches that have not begun will not run. The job can be resumed later, while its data is kept.`,
          run: () => ask<{ message: string }>(path, { method: "DELETE" }),
        },
      ]}
    />
  );
}

/** The operations that make a job go on, or not: redrive, resume, pause and unpause (docs/contract/jobs.md#redrive). */
import type { Context, Hono } from "hono";
import type { Keys } from "../../access/keys.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { firstErrors } from "../../contracts/field-errors.ts";
import { type RedriveFilter, redriveSchema } from "../../contracts/jobs.ts";
import { REDRIVE_BYTES_LIMIT } from "../../contracts/limits/submissions.ts";
import { doneBy } from "../requests/authorization.ts";
import { bodyOwner, parseJson, readBody } from "../requests/body.ts";
import { type JobAnswerDeps, statusResponse } from "./job-answers.ts";
import { assertMayRepeat, type PriorityBound } from "./priority-bound.ts";

/** The first segment of an API's address. A name never begins with `-`, so it is never the control plane's. */
export const API = "/:api{[^-/][^/]*}";

/** `jobOf`: the job of a request that may change it. */
export function addRounds(
  app: Hono,
  deps: JobAnswerDeps & PriorityBound,
  jobOf: (c: Context) => Promise<JobRow>,
): void {
  const { jobs, keys } = deps;
  const repeatable = async (c: Context) => {
    const job = await jobOf(c);
    assertMayRepeat(c, deps, job);
    return job;
  };
  app.post(`${API}/:job/redrive`, async (c) => {
    await repeatable(c);
    const filter = await redriveFilter(c, deps.keys);
    return statusResponse(c, deps, await jobs.redrive(await repeatable(c), filter, doneBy(c, keys)));
  });
  app.post(`${API}/:job/resume`, async (c) =>
    statusResponse(c, deps, await jobs.resume(await repeatable(c), doneBy(c, keys))),
  );
  for (const verb of ["pause", "unpause"] as const)
    app.post(`${API}/:job/${verb}`, async (c) => {
      await jobs.pauses[verb](await jobOf(c));
      return statusResponse(c, deps, await jobOf(c));
    });
}

/** The body of a redrive; an empty one selects all failed batches. */
async function redriveFilter(c: Context, keys: Keys): Promise<RedriveFilter> {
  const cure = "send only the text of an error";
  const body = await readBody(c, bodyOwner(c, keys, c.req.param("api")), {
    limit: REDRIVE_BYTES_LIMIT,
    cure,
  });
  if (body.length === 0) return {};
  const parsed = redriveSchema.safeParse(parseJson(body));
  if (parsed.success) return parsed.data;
  const { details } = firstErrors(parsed.error.issues, {}, () => Object.keys(redriveSchema.shape));
  throw new ServiceError(
    "invalid_request",
    `the redrive is not valid: ${details.fields[0]!.detail}`,
    details,
  );
}

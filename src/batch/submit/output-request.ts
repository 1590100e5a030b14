/** The `output` of a submission, or of an API's configuration: where the job keeps its predictions. Pure. */
import type { z } from "zod";
import type { outputSchema } from "../../contracts/jobs.ts";
import { IN_SERVER } from "../../contracts/store-paths.ts";
import { SERVER_PREFIX } from "../../object-store/backends/server-store.ts";
import { normalizedPath } from "../../object-store/store-path.ts";
import type { NewOutput } from "../output/job-outputs.ts";

export type OutputRequest = z.infer<typeof outputSchema>;

/** The address below which outputs are, with a slash at its end. */
export function outputPrefix({ store_path = IN_SERVER }: OutputRequest): string {
  return store_path === IN_SERVER ? SERVER_PREFIX : withSlash(normalizedPath(store_path));
}

/** The output of one job: below `<store_path>/<job_id>/`. */
export function outputOfJob(request: OutputRequest, jobId: string): NewOutput {
  return {
    job_id: jobId,
    prefix: `${outputPrefix(request)}${jobId}/`,
    compression: request.compression ?? "none",
  };
}

function withSlash(path: string): string {
  return path.endsWith("/") ? path : `${path}/`;
}

/** `quern job results`: prints the predictions of a job with an output, or writes them to a file. */
import { type CliContext, EXIT } from "../server/context.ts";
import { exportStream } from "../terminal/print-stream.ts";

interface ResultsOptions {
  follow?: boolean;
  from?: string;
  to?: string;
  export?: string;
}

/** JSON lines, in the order of the input. */
export async function jobResults(
  context: CliContext,
  api: string,
  jobId: string,
  { follow, from, to, export: file = "-" }: ResultsOptions,
): Promise<number> {
  const path = `${await context.client.jobPath(api, jobId)}/results`;
  const query = { cursor: from, end: to, follow: follow === true ? "true" : undefined };
  await exportStream(context, path, file, { query });
  return EXIT.success;
}

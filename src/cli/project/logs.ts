/** `quern logs`: prints the log of an API or a job. On a terminal it also says how to see more. */
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { printStream } from "../terminal/print-stream.ts";

interface ApiKind {
  kind: string;
  spec: { apis?: { name: string }[] };
}

export async function logs(
  context: CliContext,
  api: string,
  job: string | undefined,
  options: { follow?: boolean },
): Promise<number> {
  const path =
    job === undefined
      ? `/-/apis/${encodeURIComponent(api)}/logs`
      : `${await context.client.jobPath(api, job)}/logs`;
  const accept = context.output === "json" ? "application/x-ndjson" : "text/plain";
  await printStream(context, path, {
    query: { follow: options.follow === true ? "true" : undefined },
    headers: { accept },
  });
  if (options.follow !== true) await hintAtMore(context, () => moreOf(context, api, job));
  return EXIT.success;
}

/**
 * Prints a hint for a person at a terminal. If the hint cannot be found out, the command still succeeds, because the
 * log was printed.
 */
export async function hintAtMore(
  { isTerminal, err }: CliContext,
  more: () => string | undefined | Promise<string | undefined>,
): Promise<void> {
  if (!isTerminal) return;
  try {
    const hint = await more();
    if (hint !== undefined) err(`\n${hint}\n`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
}

async function moreOf({ client }: CliContext, api: string, job: string | undefined) {
  if (job !== undefined) {
    const path = await client.jobPath(api, job);
    const { job_status } = (await client.json<{ job_status: { end_time?: string } }>(path)).value;
    if (job_status.end_time !== undefined) return undefined;
    return `the job is still running: \`quern logs -f ${api} ${job}\` follows it`;
  }
  const { kind, spec } = (await client.json<ApiKind>(`/-/apis/${encodeURIComponent(api)}`)).value;
  if (kind === "BatchAPI")
    return `each job has its own log: \`quern get ${api}\` lists the jobs, \`quern logs ${api} JOB\` prints one`;
  if (kind === "TrafficSplitter") {
    const commands = (spec.apis ?? []).map(({ name }) => `\`quern logs ${name}\``);
    return `a TrafficSplitter has no log; print the logs of its APIs: ${commands.join(", ")}`;
  }
  return `${api} is still running: \`quern logs -f ${api}\` follows it`;
}

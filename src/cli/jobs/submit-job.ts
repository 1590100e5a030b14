/** `quern job submit|redrive|resume`: starts jobs, and new rounds of ended ones. */
import { readFileSync } from "node:fs";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { printStream } from "../terminal/print-stream.ts";
import type { ShownJob } from "./job-tables.ts";
import { waitForJob } from "./wait-for-job.ts";

interface OutputOptions {
  outputPath?: string;
  outputCompression?: string;
}

export async function submitJob(
  context: CliContext,
  api: string,
  file: string,
  options: { wait?: boolean; dryRun?: boolean; idempotencyKey?: string } & OutputOptions,
): Promise<number> {
  const { client, output, out, err } = context;
  const body = withOutput(readFileSync(file === "-" ? 0 : file), options);
  if (options.dryRun === true) return previewJob(context, api, body);
  const key = options.idempotencyKey;
  const { value, text } = await client.json<{ job_id: string }>(await client.apiPath(api), {
    method: "POST",
    headers: { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) },
    body,
  });
  if (options.wait === true) {
    err(`submitted job ${value.job_id}\n`);
    return waitForJob(context, api, value.job_id, {});
  }
  await out(output === "json" ? `${text}\n` : `${value.job_id}\n`);
  return EXIT.success;
}

/** Adds `output` as the object's last member, which wins. All other bytes stay as they are. */
function withOutput(body: Buffer, { outputPath, outputCompression }: OutputOptions): Buffer {
  if (outputPath === undefined) {
    if (outputCompression === undefined) return body;
    throw new CliError(
      "--output-compression needs --output-path (quern: keeps the output in the server)",
      EXIT.usage,
    );
  }
  const end = body.lastIndexOf("}");
  if (end < 0)
    throw new CliError("the submission must be a JSON object to add --output-path to it", EXIT.usage);
  const request = { store_path: outputPath, compression: outputCompression };
  const isEmpty = body.toString("latin1", 0, Math.min(end, 100)).trim() === "{" && end < 100;
  const output = `${isEmpty ? "" : ","}"output":${JSON.stringify(request)}`;
  return Buffer.concat([body.subarray(0, end), Buffer.from(output), body.subarray(end)]);
}

async function previewJob(context: CliContext, api: string, body: Uint8Array): Promise<number> {
  const accept = context.output === "json" ? "application/json" : "text/plain";
  await printStream(context, await context.client.apiPath(api), {
    method: "POST",
    query: { dryRun: "true" },
    headers: { "content-type": "application/json", accept },
    body,
  });
  return EXIT.success;
}

export interface NewRound {
  jobId: string;
  verb: "redrive" | "resume";
  /** Redrives only the batches with this text in their error. */
  error?: string;
  /** Redrives only the batches whose error is like that of the batch with this index. */
  like?: string;
  wait?: boolean;
}

/** Starts a new round: a redrive or a resume. */
export async function newRound(
  context: CliContext,
  api: string,
  { jobId, verb, error, like, wait }: NewRound,
): Promise<number> {
  const { client, output, out, err } = context;
  const body = verb === "redrive" ? { body: Buffer.from(JSON.stringify(filterOf(error, like))) } : {};
  const path = `${await client.jobPath(api, jobId)}/${verb}`;
  const { value, text } = await client.json<ShownJob>(path, { method: "POST", ...body });
  const doing = verb === "redrive" ? "redriving" : "resuming";
  const message = `${doing} job ${jobId}: ${value.job_status.batches_in_queue} batches\n`;
  if (wait === true) {
    err(message);
    return waitForJob(context, api, jobId, {});
  }
  await out(output === "json" ? `${text}\n` : message);
  return EXIT.success;
}

/** The body of a redrive. The server says what is wrong with an index that is none. */
function filterOf(error: string | undefined, like: string | undefined) {
  return { error, like: like === undefined || Number.isNaN(Number(like)) ? like : Number(like) };
}

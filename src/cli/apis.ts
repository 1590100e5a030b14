/** The commands `quern predict`, `refresh`, `rollback` and `delete`. */
import { existsSync, readFileSync } from "node:fs";
import { change } from "./server/change.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { confirm } from "./terminal/confirm.ts";

/** The file of `predict [API] FILE`: the last argument. Throws if there is no such file. */
export function payloadFile(api: string | undefined, file: string | undefined): string {
  const payload = file ?? api;
  if (payload === "-" || (payload !== undefined && existsSync(payload))) return payload;
  const what = payload === undefined ? "name a JSON file" : `there is no file ${payload}`;
  throw new CliError(`${what}; give an API and a JSON file (- is standard input)`, EXIT.usage);
}

export async function predict(context: CliContext, api: string, file: string): Promise<number> {
  const body = readFileSync(file === "-" ? 0 : file);
  // Predictors may also respond with text and streams. A carriage return would be printed escaped.
  const text = await context.client.text(await context.client.apiPath(api), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  await context.out(`${text.replaceAll(/\r\n?/g, "\n")}\n`);
  return EXIT.success;
}

/** `records`: the records of the API's jobs, too. */
export async function remove(context: CliContext, api: string, records: boolean): Promise<number> {
  const also = records ? " The records, failures, logs and kept outputs of all its jobs are removed." : "";
  await confirm(context, `delete ${api}? Its jobs in progress are stopped.${also}`);
  const query = { records: records ? "true" : undefined };
  return change(context, `/-/apis/${encodeURIComponent(api)}`, { method: "DELETE", query });
}

/** Stops a job. */
export async function stopJob(context: CliContext, api: string, job: string): Promise<number> {
  return change(context, await context.client.jobPath(api, job), { method: "DELETE" });
}

export function refresh(context: CliContext, api: string, { force }: { force?: boolean }): Promise<number> {
  const query = { force: force === true ? "true" : undefined };
  return change(context, `/-/apis/${encodeURIComponent(api)}/refresh`, { query });
}

/** No new batch of a batch API's jobs begins, until it is continued. */
export function pauseOrContinue(
  context: CliContext,
  api: string,
  verb: "pause" | "unpause",
): Promise<number> {
  return change(context, `/-/apis/${encodeURIComponent(api)}/${verb}`);
}

export function rollback(context: CliContext, api: string, id: string | undefined): Promise<number> {
  return change(context, `/-/apis/${encodeURIComponent(api)}/rollback`, { query: { api_id: id } });
}

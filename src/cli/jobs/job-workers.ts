/** `quern job workers`: when each worker of a job started, was ready and ended, and why. */
import { wallMs } from "../../base/clock.ts";
import type { JobWorkersShown, WorkerSpanShown } from "../../contracts/http/explain-operations.ts";
import { type CliContext, EXIT } from "../server/context.ts";
import { age, cell, dateTime, table } from "../terminal/table.ts";

export async function jobWorkers(context: CliContext, api: string, job: string): Promise<number> {
  const { client, output, out } = context;
  const { value, text } = await client.json<JobWorkersShown>(`${await client.jobPath(api, job)}/workers`);
  if (output === "json") await out(`${text}\n`);
  else await out(value.workers.length === 0 ? "no worker has started\n" : `${shown(value.workers)}\n`);
  return EXIT.success;
}

function shown(workers: readonly WorkerSpanShown[]): string {
  return table(["worker", "started", "start took", "worked", "batches", "now"], workers.map(cells));
}

function cells(span: WorkerSpanShown): string[] {
  const { worker_id, started_time, ready_time, ended_time, batches, workers } = span;
  const end = ended_time ?? new Date(wallMs()).toISOString();
  const between = (from: string, to: string) => age(Math.max(0, Date.parse(to) - Date.parse(from)));
  return [
    workers > 1 ? `${workers} workers` : worker_id,
    dateTime(started_time),
    ready_time === null ? "-" : between(started_time, ready_time),
    ready_time === null ? "-" : between(ready_time, end),
    String(batches),
    cell(stateOf(span)),
  ];
}

function stateOf({ ready_time, ended_time, how, reason, batch_in_hand, in_hand_s }: WorkerSpanShown): string {
  if (ended_time !== null) return reason === null ? (how ?? "ended") : `${how}: ${reason}`;
  if (ready_time === null) return "starting";
  if (batch_in_hand === null) return "has no batch";
  return `batch ${batch_in_hand} for ${age(1000 * (in_hand_s ?? 0))}`;
}

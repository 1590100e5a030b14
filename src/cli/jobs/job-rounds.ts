/** `quern job rounds`: when each round of a job began, how and by whom, and what became of its batches. */
import { wallMs } from "../../base/clock.ts";
import type { JobRoundsShown, RoundShown } from "../../contracts/http/round-operations.ts";
import { type CliContext, EXIT } from "../server/context.ts";
import { age, cell, dateTime, table } from "../terminal/table.ts";

export async function jobRounds(context: CliContext, api: string, job: string): Promise<number> {
  const { client, output, out } = context;
  const { value, text } = await client.json<JobRoundsShown>(`${await client.jobPath(api, job)}/rounds`);
  if (output === "json") await out(`${text}\n`);
  else await out(`${shown(value.rounds)}\n`);
  return EXIT.success;
}

function shown(rounds: readonly RoundShown[]): string {
  const head = ["round", "began", "by*", "selection*", "took", "batches", "succeeded", "failed", "outcome"];
  return table(head, rounds.map(cells));
}

function cells(round: RoundShown): string[] {
  const { how, by, by_name, selection, begun_time, ended_time, batches, succeeded, failed } = round;
  return [
    `${round.round} ${how ?? ""}`.trim(),
    dateTime(begun_time),
    by_name ?? by ?? "",
    selection === null ? "" : cell(selection),
    tookOf(round),
    ...[batches, succeeded, failed].map((count) => (count === null ? "-" : String(count))),
    outcomeOf(round, ended_time),
  ];
}

function tookOf({ begun_time, ended_time, status }: RoundShown): string {
  if (ended_time === null && status === null) return "-";
  const endMs = ended_time === null ? wallMs() : Date.parse(ended_time);
  return age(Math.max(0, endMs - Date.parse(begun_time)));
}

function outcomeOf({ status, reason }: RoundShown, endedTime: string | null): string {
  if (status === null) return "-";
  const words = status.replace("status_", "").replaceAll("_", " ");
  return endedTime === null || reason === null ? words : cell(`${words}: ${reason}`);
}

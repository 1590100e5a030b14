/** `quern changes`: which versions of an API were deployed or rolled back, by whom, and which replicas ended. */
import { prettyJson } from "../../base/json/exact.ts";
import type { ApiChanges } from "../../contracts/http/session-operations.ts";
import { type CliContext, EXIT } from "../server/context.ts";
import { cell, dateTime, table } from "../terminal/table.ts";

type Change = ApiChanges["changes"][number];

export async function showChanges(context: CliContext, api: string): Promise<number> {
  const { client, output, out } = context;
  const { value, text } = await client.json<ApiChanges>(`/-/apis/${encodeURIComponent(api)}/changes`);
  if (output === "json") await out(`${prettyJson(text)}\n`);
  else await out(value.changes.length === 0 ? "nothing changed in two weeks\n" : `${shown(value.changes)}\n`);
  return EXIT.success;
}

function shown(changes: readonly Change[]): string {
  return table(["time", "what", "version", "by*"], changes.map(cells));
}

function cells({ time, kind, api_id, by, by_name, times, how }: Change): string[] {
  const ended = `${times === 1 ? "a replica" : `${times} replicas`} ended: ${how}`;
  const what = kind === "replica_ended" ? cell(ended) : kind.replace("_", " ");
  return [dateTime(time), what, api_id ?? "-", by_name ?? by ?? ""];
}

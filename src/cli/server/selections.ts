/** Selections: the server counts what matches, and acts on exactly these (docs/contract/jobs.md#selections). */
import type { CliContext } from "./context.ts";

interface Selection {
  selection_id: string;
  count: number;
}

export interface Acted {
  changed: number;
  skipped: { id: string; reason: string }[];
  skipped_count: number;
}

export async function select({ client }: CliContext, asked: object): Promise<Selection> {
  const headers = { "content-type": "application/json" };
  const body = new TextEncoder().encode(JSON.stringify(asked));
  return (await client.json<Selection>("/-/selections", { method: "POST", headers, body })).value;
}

export async function actOn(
  { client }: CliContext,
  { selection_id, count }: Selection,
  action: string,
): Promise<Acted> {
  if (count === 0) return { changed: 0, skipped: [], skipped_count: 0 };
  const path = `/-/selections/${encodeURIComponent(selection_id)}/${action}`;
  return (await client.json<Acted>(path, { method: "POST" })).value;
}

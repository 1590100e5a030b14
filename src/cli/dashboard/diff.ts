/** `quern diff`: which files and lines differ between two versions of an API. */
import { prettyJson } from "../../base/json/exact.ts";
import type { FileDiff, VersionDiff } from "../../contracts/http/session-operations.ts";
import { type CliContext, EXIT } from "../server/context.ts";

export async function showDiff(
  context: CliContext,
  api: string,
  from: string | undefined,
  to: string | undefined,
): Promise<number> {
  const { client, output, out } = context;
  const path = `/-/apis/${encodeURIComponent(api)}/diff`;
  const { value, text } = await client.json<VersionDiff>(path, { query: { from, to } });
  await out(output === "json" ? `${prettyJson(text)}\n` : `${shown(value)}\n`);
  return EXIT.success;
}

function shown({ from, to, files, files_left_out }: VersionDiff): string {
  const head = `${from ?? "nothing"} → ${to}`;
  if (files === null) return `${head}\nits files were changed on the server since`;
  if (files.length === 0) return `${head}\nno file differs`;
  const more = files_left_out > 0 ? [`${files_left_out} more files differ`] : [];
  return [head, ...files.map(fileText), ...more].join("\n\n");
}

function fileText({ path, change, added, removed, text }: FileDiff): string {
  const lines = added === null ? "not compared: it is long, or no text" : `+${added} -${removed}`;
  return `${path} (${change}, ${lines})${text === null || text === "" ? "" : `\n${text}`}`;
}

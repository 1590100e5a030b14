/** `quern job verify`: has an output read again, and says what differs from its manifest. */
import { objectIn } from "../server/client.ts";
import { type CliContext, EXIT } from "../server/context.ts";
import { linesOf } from "../server/lines.ts";
import { size } from "../terminal/table.ts";

interface Part {
  path: string;
  rows: number;
  bytes: number;
  differences: string[];
}
type Whole = Omit<Part, "path"> & { ok: boolean; parts: number; batches: number };

/** Exit code 0 if all is as the manifest says, else 1. */
export async function verifyOutput(
  { client, output, out, err, errLine, isInteractive }: CliContext,
  api: string,
  jobId: string,
): Promise<number> {
  const path = `${await client.jobPath(api, jobId)}/verify`;
  const response = await client.request(path, { method: "POST" });
  let whole: Whole | undefined;
  for await (const line of linesOf(response)) {
    const checked = checkedIn(line);
    if (checked === undefined) throw client.foreign(path);
    if (output === "json") await out(`${line}\n`);
    for (const difference of checked.differences)
      err(`${"path" in checked ? `${checked.path}: ` : ""}${difference}\n`);
    if (!("path" in checked)) whole = checked;
    else if (isInteractive) errLine(`${checked.path}: ${checked.rows} rows`);
  }
  if (output !== "json" && whole !== undefined) await out(summary(whole));
  return whole?.ok === true ? EXIT.success : EXIT.failed;
}

/** Undefined if the line is not one of a Quern server. */
function checkedIn(line: string | undefined): Part | Whole | undefined {
  const value = line === undefined ? undefined : (objectIn(line) as Part | Whole | undefined);
  return Array.isArray(value?.differences) ? value : undefined;
}

function summary({ ok, parts, rows, batches, bytes }: Whole): string {
  const found = `${parts} parts, ${batches} batches, ${rows} rows, ${size(bytes)}`;
  return ok ? `the output is complete: ${found}\n` : `the output differs from its manifest: ${found}\n`;
}

/** `quern audit`: shows who changed what, and what was refused. */
import { printableLine } from "../base/printable.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { LINE_CHARACTERS_MAX } from "./server/lines.ts";
import { printStream } from "./terminal/print-stream.ts";

interface AuditLine {
  time: string;
  method: string;
  path: string;
  by: string | null;
  by_name?: string;
  client?: string;
  status: number;
  what?: string;
  more?: number;
}

export async function showAudit(
  context: CliContext,
  { follow, ...query }: { follow?: boolean; key?: string; since?: string },
): Promise<number> {
  const options = { query: { ...query, follow: follow === true ? "true" : undefined } };
  if (context.output === "json") await printStream(context, "/-/audit", options);
  else await printStream(asTable(context), "/-/audit", options);
  return EXIT.success;
}

/** Converts each line of the response to a table row. A chunk may end inside a line. */
function asTable(context: CliContext): CliContext {
  let rest = "";
  const out = async (piece: string) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    if (rest.length > LINE_CHARACTERS_MAX)
      throw new CliError("the server sent a line of the audit without an end", EXIT.failed);
    for (const line of lines) await context.out(`${sentence(JSON.parse(line) as AuditLine)}\n`);
  };
  return { ...context, out };
}

function sentence({ time, method, path, by, by_name, client, status, what, more }: AuditLine): string {
  const others = more === undefined ? "" : ` (and ${more - 1} before it)`;
  const key = by_name === undefined ? (by ?? "-") : `${by} "${by_name}"`;
  const caller = client === undefined ? key : `${key} ${client}`;
  return printableLine(
    `${time} ${caller} ${method} ${path} ${status}${what === undefined ? "" : ` ${what}`}${others}`,
  );
}

/**
 * Responds with log lines, as text or as records with `Accept: application/x-ndjson`. `?follow=true` continues until
 * the end. Without it, the response is one of the lists that a key may read at once.
 */
import type { Context } from "hono";
import { hideInText, hideOwnKeys } from "../../contracts/secrets.ts";
import { type LogLine, readLogLines } from "../../observe/log-files.ts";
import { isTrue } from "../requests/parameters.ts";
import type { OpenStreams } from "./open-streams.ts";

const NDJSON = "application/x-ndjson";
/** What pip and uv print: addresses of packages, as requirements.txt has them. */
const INSTALLER = "install";

export function logsResponse(
  c: Context,
  { streams, lists }: { streams: OpenStreams; lists: OpenStreams },
  directory: string,
  isOver: () => Promise<boolean>,
): Response {
  const isFollowed = isTrue(c.req.query("follow"));
  const asRecords = (c.req.header("accept") ?? "").includes(NDJSON);
  const write = asRecords
    ? (line: LogLine) => `${JSON.stringify(line)}\n`
    : (line: LogLine) => `${line.time} ${line.source} ${line.line}\n`;
  async function* chunks() {
    for await (const lines of readLogLines(directory, isFollowed, isOver))
      yield hideOwnKeys(lines.map(shown).map(write).join(""));
  }
  const type = asRecords ? NDJSON : "text/plain; charset=utf-8";
  return (isFollowed ? streams : lists).answer(c, chunks(), type);
}

/** Keys with the scope `submit` may read logs, but not the secrets of a project. Output of user code is unchanged. */
function shown(line: LogLine): LogLine {
  return line.source === INSTALLER ? { ...line, line: hideInText(line.line) } : line;
}

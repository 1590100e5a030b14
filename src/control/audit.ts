/** `GET /-/audit`: the audit's lines as they were written. `?follow=true` continues with new lines. */

import type { Context } from "hono";
import { timestamp, wallMs } from "../base/clock.ts";
import { quotedBeginning } from "../base/printable.ts";
import { parseDurationMs } from "../contracts/config/durations.ts";
import { ServiceError } from "../contracts/errors.ts";
import { DURATION_PATTERN } from "../contracts/keys.ts";
import { readAudit } from "../observe/read-audit.ts";
import type { OpenStreams } from "./answers/open-streams.ts";
import { isTrue } from "./requests/parameters.ts";

const NDJSON = "application/x-ndjson";

export function auditResponse(
  c: Context,
  { streams, lists }: { streams: OpenStreams; lists: OpenStreams },
  directory: string,
): Response {
  const query = {
    since: sinceOf(c.req.query("since")),
    key: c.req.query("key"),
    follow: isTrue(c.req.query("follow")),
  };
  async function* chunks() {
    for await (const lines of readAudit(directory, query)) yield lines.map((line) => `${line}\n`).join("");
  }
  return (query.follow ? streams : lists).answer(c, chunks(), NDJSON);
}

/** Converts the duration in `since` to a timestamp. Without it, "" is before all timestamps. */
function sinceOf(given: string | undefined): string {
  if (given === undefined) return "";
  if (DURATION_PATTERN.test(given))
    return timestamp(BigInt(Math.max(0, wallMs() - parseDurationMs(given)!)) * 1_000_000n);
  throw new ServiceError(
    "invalid_request",
    `since must be a duration such as 1h, 30m or 90s (got ${quotedBeginning(given)})`,
  );
}

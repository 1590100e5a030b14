/**
 * Sends a job as server-sent events (WHATWG HTML, section 9.2): its status on each change, and at least once a second
 * while it runs.
 */
import type { Context } from "hono";
import { delay } from "../../base/clock.ts";
import { isTerminal } from "../../batch/records/job-status.ts";
import { revoked, toProblem } from "../../contracts/errors.ts";
import { EVENT_EVERY_MS, EVENT_POLL_MS } from "../../contracts/limits/jobs.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import { requestId } from "../requests/forwarded.ts";
import { type StatusDeps, statusText } from "./job-answers.ts";

/**
 * Sends `event: status` with the record, without `config`, which never changes. After the last one it sends `event:
 * end`, after which a client should not reconnect.
 */
export function eventsResponse(
  c: Context,
  deps: StatusDeps & { streams: OpenStreams },
  apiName: string,
  jobId: string,
): Response {
  const { jobs, streams } = deps;
  async function* events(): AsyncGenerator<string> {
    let sent = "";
    let sentMs = 0;
    for (;;) {
      const row = await jobs.records.get(apiName, jobId);
      const text = statusText(c, deps, row);
      if (text !== sent || performance.now() - sentMs >= EVENT_EVERY_MS) {
        yield `event: status\ndata: ${text}\n\n`;
        sent = text;
        sentMs = performance.now();
      }
      if (isTerminal(row.status)) {
        yield "event: end\ndata: {}\n\n";
        return;
      }
      await delay(EVENT_POLL_MS);
      if (streams.isAllowed(c)) continue;
      yield `event: error\ndata: ${JSON.stringify(toProblem(revoked(), requestId(c)))}\n\n`;
      return;
    }
  }
  return streams.answer(c, events(), "text/event-stream", { "cache-control": "no-cache" });
}

/** `/-/queues`: the counts of a job's queue, and dead letter queues with their messages. */

import { type Context, Hono } from "hono";
import type { Keys } from "../access/keys.ts";
import type { Need } from "../access/permission.ts";
import { isUlid } from "../base/ids.ts";
import { stringifyWithRaw } from "../base/json/exact.ts";
import { quotedBeginning } from "../base/printable.ts";
import type { Jobs } from "../batch/jobs.ts";
import type { Queues } from "../batch/letters/queues.ts";
import type { DeadLetterPage } from "../batch/letters/search-letters.ts";
import { jobStatus } from "../batch/records/read-job.ts";
import { ServiceError } from "../contracts/errors.ts";
import { QUEUE_CURSOR_PATTERN } from "../contracts/queues.ts";
import type { OpenStreams } from "./answers/open-streams.ts";
import { queueUrl } from "./jobs/job-answers.ts";
import { assertKey, isPermitted } from "./requests/authorization.ts";
import { limitOf, searchOf } from "./requests/parameters.ts";

const QUEUE_CURSOR = new RegExp(QUEUE_CURSOR_PATTERN);

export interface QueueRoutesDeps {
  jobs: Jobs;
  queues: Queues;
  keys: Keys;
  lists: OpenStreams;
}

export function queueRoutes({ jobs, queues, keys, lists }: QueueRoutesDeps): Hono {
  const app = new Hono();
  app.get("/-/queues", async (c) => {
    const after = cursorOf(c, (cursor) => QUEUE_CURSOR.test(cursor));
    return c.json(await queues.list(after, limitOf(c)));
  });
  app.get("/-/queues/:queue", async (c) => {
    const name = c.req.param("queue");
    const row = isUlid(name) ? await jobs.records.byId(name) : undefined;
    const need: Need = { scope: "submit", api: row?.api_name ?? "", isRead: true };
    // Other callers get the same error as for a queue that does not exist: the one for this API names it.
    if (row === undefined || !isPermitted(c, keys, need)) {
      assertKey(c, keys, { scope: "view" });
      return c.json(await queues.counts(name));
    }
    assertKey(c, keys, need);
    const status = jobStatus(row, queueUrl(c, row), undefined);
    const { job_id, batches_in_queue, batch_metrics, total_batch_count } = status;
    return c.json({ job_id, batches_in_queue, batch_metrics, total_batch_count: total_batch_count ?? null });
  });
  app.get("/-/queues/:queue/messages", async (c) => {
    const search = searchOf(c);
    const page = await queues.messages(c.req.param("queue"), cursorOf(c, isUlid), limitOf(c), search);
    return messagesResponse(c, lists, page);
  });
  app.delete("/-/queues/:queue/messages", async (c) => {
    const purged = await queues.purge(c.req.param("queue"));
    return c.json({ message: `purged ${purged} messages of ${c.req.param("queue")}` });
  });
  app.delete("/-/queues/:queue/messages/:message", async (c) => {
    const { queue, message } = c.req.param();
    if (await queues.remove(queue, message)) return c.json({ message: `deleted message ${message}` });
    throw new ServiceError("message_not_found", `${queue} has no message "${message}"`);
  });
  return app;
}

function cursorOf(c: Context, isLegal: (cursor: string) => boolean): string {
  const cursor = c.req.query("cursor");
  if (cursor === undefined || isLegal(cursor)) return cursor ?? "";
  const message = `cursor must be the next_cursor of the previous page (got ${quotedBeginning(cursor)})`;
  throw new ServiceError("invalid_request", message);
}

/** Streamed, because the bodies of a page may be many megabytes. */
function messagesResponse(c: Context, lists: OpenStreams, page: DeadLetterPage): Response {
  async function* chunks(): AsyncGenerator<string> {
    yield '{"messages":[';
    let separator = "";
    for await (const found of page.letters) {
      // Others have their turn, and the search ends if the client has left.
      if (found === undefined) {
        yield "";
        continue;
      }
      const { message_id, body, attributes_json, sent_time } = found;
      const letter = { message_id, body: Buffer.from(body).toString("utf8"), sent_time };
      yield separator + stringifyWithRaw(letter, { attributes: attributes_json });
      separator = ",";
    }
    yield `],"next_cursor":${JSON.stringify(page.next)}}`;
  }
  return lists.answer(c, chunks(), "application/json");
}

/** `GET /-/overview`: as JSON, or as server-sent events (docs/contract/operations.md#overview). */
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { revoked, toProblem } from "../../contracts/errors.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import { jsonText } from "../answers/stream-text.ts";
import { requestId } from "../requests/forwarded.ts";
import { LiveOverview } from "./live-overview.ts";
import { Overview, type OverviewDeps } from "./overview.ts";
import type { Verdicts } from "./request-verdicts.ts";

export interface OverviewStreamDeps extends OverviewDeps {
  streams: OpenStreams;
}

export function liveOverview(deps: OverviewDeps, verdicts: Verdicts): LiveOverview {
  const overview = new Overview(deps, verdicts);
  return new LiveOverview(() => overview.compute());
}

/** Those who follow see at once what a request has changed. Submissions come by the hundred: they can wait a second. */
export function tellChanges(live: LiveOverview): MiddlewareHandler {
  return async (c, next) => {
    await next();
    const { method, path } = c.req;
    if (method === "DELETE" || (method !== "GET" && path.startsWith("/-/"))) live.changed();
  };
}

export function overviewStreamRoutes(deps: OverviewStreamDeps, live: LiveOverview): Hono {
  const app = new Hono();
  app.get("/-/overview", async (c) => {
    const isStream = c.req.header("accept")?.includes("text/event-stream") === true;
    if (!isStream) return jsonText(await live.readText());
    const headers = { "cache-control": "no-cache" };
    return deps.streams.answer(c, events(c, deps, live), "text/event-stream", headers);
  });
  return app;
}

async function* events(
  c: Context,
  { streams }: OverviewStreamDeps,
  live: LiveOverview,
): AsyncGenerator<string> {
  const { listener, leave } = await live.join();
  let isEnding = false;
  streams.whenEnding(c, () => {
    isEnding = true;
    listener.wake();
  });
  try {
    while (!isEnding) {
      const text = listener.waiting.shift();
      if (text !== undefined) yield text;
      else await new Promise<void>((resolve) => (listener.wake = resolve));
    }
    yield `event: error\ndata: ${JSON.stringify(toProblem(revoked(), requestId(c)))}\n\n`;
  } finally {
    leave();
  }
}

/**
 * Follows the overview of the server, for as long as somebody wants it. A lost connection is opened again, after longer
 * and longer pauses that are partly chance, so that a restarted server does not get all browsers at once.
 */
import { asError, Problem } from "../server/problem.ts";
import { send } from "../server/request.ts";
import type { Overview, OverviewChanges } from "../shapes.ts";
import { applyChanges } from "./apply-changes.ts";
import { readEvents } from "./read-events.ts";

/** What the pages get: the newest overview, and whether it is still followed. */
export type LiveState =
  | { state: "connecting" }
  | { state: "live"; overview: Overview }
  | { state: "lost"; overview: Overview | undefined; message: string }
  /** The session has ended, or there never was one. */
  | { state: "signed-out" };

/** The server sends a comment each 15 s. */
const SILENT_MAX_MS = 40_000;
const FIRST_PAUSE_MS = 500;
const PAUSE_MAX_MS = 15_000;

export async function follow(tell: (state: LiveState) => void, left: AbortSignal): Promise<void> {
  let known: Overview | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  tell({ state: "connecting" });
  while (!left.aborted) {
    try {
      for await (const overview of overviews(left)) {
        known = overview;
        pauseMs = FIRST_PAUSE_MS;
        tell({ state: "live", overview });
      }
    } catch (thrown) {
      if (left.aborted) return;
      if (isSignedOut(thrown)) return tell({ state: "signed-out" });
      tell({ state: "lost", overview: known, message: asError(thrown).message });
    }
    await rest(pauseMs * (0.5 + Math.random() / 2), left);
    pauseMs = Math.min(PAUSE_MAX_MS, pauseMs * 2);
  }
}

async function* overviews(left: AbortSignal): AsyncGenerator<Overview> {
  const response = await send("/-/overview", { headers: { accept: "text/event-stream" }, signal: left });
  let known: Overview | undefined;
  for await (const { name, data } of readEvents(response.body!, SILENT_MAX_MS)) {
    if (name === "overview") known = JSON.parse(data) as Overview;
    else if (name === "changes" && known) known = applyChanges(known, JSON.parse(data) as OverviewChanges);
    else continue;
    yield known;
  }
}

function isSignedOut(thrown: unknown): boolean {
  return thrown instanceof Problem && (thrown.status === 401 || thrown.status === 403);
}

function rest(ms: number, left: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    left.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
  });
}

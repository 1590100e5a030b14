/** The live state of the server, for every page: one stream for all tabs, or one for this tab if they cannot join. */
import { computed, effect, signal } from "@preact/signals";
import { serverSaid } from "../format/now.ts";
import { onEvent } from "../server/on-event.ts";
import { ask } from "../server/request.ts";
import { pagesRoot } from "../server/root.ts";
import { firstRead } from "../server/use-reads.ts";
import type { Overview } from "../shapes.ts";
import { follow, type LiveState } from "./follow.ts";

/** Replaced by the name of the worker's file when the pages are built. */
declare const STREAM_WORKER: string;

const HERE_MS = 10_000;
/** The stream begins after this time at the latest. */
const FIRST_MS = 2_000;

export const live = signal<LiveState>({ state: "connecting" });
export const overview = computed(() => ("overview" in live.value ? live.value.overview : undefined));

effect(() => {
  if (overview.value !== undefined) serverSaid(overview.value.time);
});

interface Stream {
  again: () => void;
}

let stream: Stream | undefined;

/**
 * The first overview comes without the worker, whose start takes longer than the response. What a page reads of its own
 * comes before it, and is drawn before it: a person waits for that.
 */
async function readOnce(): Promise<void> {
  await Promise.race([firstRead?.then(drawn), new Promise((resolve) => setTimeout(resolve, FIRST_MS))]);
  try {
    const first = await ask<Overview>("/-/overview", { signal: AbortSignal.timeout(FIRST_MS) });
    if (live.value.state === "connecting") live.value = { state: "live", overview: first };
  } catch {
    // The stream says what is wrong.
  }
}

/** After the next frame. A tab that nobody sees has none. */
function drawn(): Promise<void> {
  return new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
}

/** Begins to follow, or begins anew after signing in or out. The stream begins when the page has its first numbers. */
export const followLive = onEvent<void>(async () => {
  if (stream !== undefined) live.value = { state: "connecting" };
  await readOnce();
  if (stream === undefined) stream = typeof SharedWorker === "undefined" ? ownStream() : joinedStream();
  else stream.again();
});

function take(state: LiveState): void {
  live.value = state;
}

function joinedStream(): Stream {
  const worker = new SharedWorker(`${pagesRoot}/${STREAM_WORKER}`, { type: "module", name: "quern" });
  worker.port.onmessage = ({ data }) => take(data as LiveState);
  worker.port.start();
  setInterval(() => worker.port.postMessage("here"), HERE_MS);
  addEventListener("pagehide", () => worker.port.postMessage("gone"));
  addEventListener("pageshow", (event) => event.persisted && worker.port.postMessage("here"));
  return { again: () => worker.port.postMessage("again") };
}

function ownStream(): Stream {
  let leaving = new AbortController();
  const begin = () => {
    follow(take, leaving.signal).catch(() => {});
  };
  begin();
  return {
    again: () => {
      leaving.abort();
      leaving = new AbortController();
      begin();
    },
  };
}

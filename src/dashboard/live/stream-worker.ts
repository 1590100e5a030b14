/**
 * A shared worker: all tabs of the browser have one stream of the server together. It begins with the first tab, and
 * ends with the last. A tab says `here` every few seconds, because a closed one says nothing.
 */
import { follow, type LiveState } from "./follow.ts";

const TAB_GONE_MS = 30_000;
const TABS_CHECK_MS = 5_000;

const tabs = new Map<MessagePort, number>();
let last: LiveState = { state: "connecting" };
let leaving: AbortController | undefined;

function tellAll(state: LiveState): void {
  last = state;
  for (const port of tabs.keys()) port.postMessage(state);
}

function begin(): void {
  if (leaving !== undefined) return;
  const mine = new AbortController();
  leaving = mine;
  follow(tellAll, mine.signal)
    .catch(reportError)
    .finally(() => {
      if (leaving === mine) leaving = undefined;
    });
}

function end(): void {
  leaving?.abort();
  leaving = undefined;
}

/** `again`: after signing in or out, the stream begins anew. */
function heard(port: MessagePort, said: "here" | "again" | "gone"): void {
  if (said === "gone") tabs.delete(port);
  else tabs.set(port, performance.now());
  if (said === "again") end();
  if (tabs.size === 0) end();
  else if (said === "again" || last.state !== "signed-out") begin();
}

addEventListener("connect", ((event: MessageEvent) => {
  const [port] = event.ports as unknown as [MessagePort];
  port.onmessage = ({ data }) => heard(port, data);
  tabs.set(port, performance.now());
  port.postMessage(last);
  begin();
}) as EventListener);

setInterval(() => {
  const nowMs = performance.now();
  for (const [port, heardMs] of tabs) if (nowMs - heardMs > TAB_GONE_MS) tabs.delete(port);
  if (tabs.size === 0) end();
}, TABS_CHECK_MS);

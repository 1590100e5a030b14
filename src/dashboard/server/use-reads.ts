/**
 * When a page reads something of the server: when it opens, again some time after what it depends on has changed, and
 * every now and then.
 */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { onEvent } from "./on-event.ts";

/** Changes that follow each other faster make one read. */
const AFTER_CHANGE_MS = 500;

/** Settles with the first thing that the first page reads of its own. Undefined if that page reads none. */
export let firstRead: Promise<unknown> | undefined;

export interface ReadRules {
  /** Another value means that it has changed. The first read of the page is not broken off for that. */
  version?: unknown;
  /** Not while nobody sees the page. */
  everyMs?: number | undefined;
}

/**
 * Calls `read` at once for each new `path`, unless it is undefined, and each new `round`. `read` gets a signal that is
 * aborted when the page is left or asks for another path.
 */
export function useReads(
  path: string | undefined,
  round: number,
  { version, everyMs }: ReadRules,
  read: (signal: AbortSignal) => Promise<void>,
): void {
  const latest = useRef(read);
  latest.current = read;
  const left = useRef(new AbortController());
  const begin = onEvent<void>(() => {
    const reading = latest.current(left.current.signal);
    firstRead ??= reading;
    return reading;
  });
  // Before the browser paints: the page waits for it.
  useLayoutEffect(() => {
    if (path === undefined) return;
    left.current = new AbortController();
    begin();
    const timer = everyMs === undefined ? undefined : setInterval(() => document.hidden || begin(), everyMs);
    return () => {
      left.current.abort();
      clearInterval(timer);
    };
  }, [path, round, everyMs]);
  const seen = useRef(version);
  useEffect(() => {
    if (path === undefined || seen.current === version) return;
    seen.current = version;
    const timer = setTimeout(() => begin(), AFTER_CHANGE_MS);
    return () => clearTimeout(timer);
  }, [path, version]);
}

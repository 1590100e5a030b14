/**
 * A thing of the server that a page shows. It is read when the page opens and when `version` changes, and again every
 * `everyMs`. While a new one is on its way, and if that fails, the last one stays.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { onEvent } from "./on-event.ts";
import { asError } from "./problem.ts";
import { ask } from "./request.ts";

export interface Resource<T> {
  value: T | undefined;
  error: Error | undefined;
  isLoading: boolean;
  /** Reads it again. */
  again: () => void;
}

export interface ReadRules {
  /** Reads it again when this changes. */
  version?: unknown;
  everyMs?: number | undefined;
}

/** `path`: undefined reads nothing. */
export function useResource<T>(path: string | undefined, { version, everyMs }: ReadRules = {}): Resource<T> {
  const [state, setState] = useState<{ path?: string | undefined; value?: T; error?: Error }>({});
  const [round, setRound] = useState(0);
  const lastRead = useRef(0);
  useEffect(() => {
    if (path === undefined) return;
    const left = new AbortController();
    const read = onEvent<void>(async () => {
      lastRead.current = performance.now();
      try {
        const value = await ask<T>(path, { signal: left.signal });
        if (!left.signal.aborted) setState({ path, value });
      } catch (thrown) {
        if (left.signal.aborted) return;
        setState((last) => ({ ...(last.path === path ? last : {}), path, error: asError(thrown) }));
      }
    });
    // Many changes in a row make one read a second.
    const sinceLast = performance.now() - lastRead.current;
    const waitMs = state.path === path && sinceLast < 1000 ? 1000 - sinceLast : 0;
    const timers = [setTimeout(() => read(), waitMs)];
    if (everyMs !== undefined) timers.push(setInterval(() => document.hidden || read(), everyMs));
    return () => {
      left.abort();
      for (const timer of timers) clearTimeout(timer);
    };
  }, [path, version, everyMs, round]);
  const isOfPath = state.path === path;
  return {
    value: isOfPath ? state.value : undefined,
    error: isOfPath ? state.error : undefined,
    isLoading: path !== undefined && (!isOfPath || (state.value === undefined && state.error === undefined)),
    again: () => setRound((last) => last + 1),
  };
}

/** A thing of the server that a page shows. While a new one is on its way, and if that fails, the last one stays. */
import { useState } from "preact/hooks";
import { asError } from "./problem.ts";
import { ask } from "./request.ts";
import { type ReadRules, useReads } from "./use-reads.ts";

export interface Resource<T> {
  value: T | undefined;
  error: Error | undefined;
  isLoading: boolean;
  /** Reads it again. */
  again: () => void;
}

/** `path`: undefined reads nothing. */
export function useResource<T>(path: string | undefined, rules: ReadRules = {}): Resource<T> {
  const [state, setState] = useState<{ path?: string | undefined; value?: T; error?: Error }>({});
  const [round, setRound] = useState(0);
  useReads(path, round, rules, async (signal) => {
    try {
      const value = await ask<T>(path!, { signal });
      if (!signal.aborted) setState({ path, value });
    } catch (thrown) {
      if (signal.aborted) return;
      setState((last) => ({ ...(last.path === path ? last : {}), path, error: asError(thrown) }));
    }
  });
  const isOfPath = state.path === path;
  return {
    value: isOfPath ? state.value : undefined,
    error: isOfPath ? state.error : undefined,
    isLoading: path !== undefined && (!isOfPath || (state.value === undefined && state.error === undefined)),
    again: () => setRound((last) => last + 1),
  };
}

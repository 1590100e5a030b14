/** A list that comes in pages: the first when the list opens, the next ones on request. */

import { useState } from "preact/hooks";
import { onEvent } from "../server/on-event.ts";
import { asError } from "../server/problem.ts";
import { ask, withQuery } from "../server/request.ts";
import { useReads } from "../server/use-reads.ts";

interface PageOf {
  next_cursor: string | null;
}

export interface Pages<P> {
  pages: readonly P[];
  error: Error | undefined;
  isLoading: boolean;
  /** Reads the next page; undefined if this was the last. */
  more: ((event: unknown) => void) | undefined;
  again: () => void;
}

/** `version`: the first page is read again when it changes, if no other one is open. */
export function usePages<P extends PageOf>(path: string | undefined, version?: unknown): Pages<P> {
  const [state, setState] = useState<{ path?: string | undefined; pages: readonly P[]; error?: Error }>({
    pages: [],
  });
  const [isBusy, setBusy] = useState(false);
  const [round, setRound] = useState(0);
  const isOne = state.path !== path || state.pages.length <= 1;
  useReads(isOne ? path : undefined, round, { version }, async (signal) => {
    try {
      const page = await ask<P>(path!, { signal });
      if (!signal.aborted) setState({ path, pages: [page] });
    } catch (thrown) {
      if (signal.aborted) return;
      setState((last) => ({ path, pages: last.path === path ? last.pages : [], error: asError(thrown) }));
    }
  });
  const cursor = state.path === path ? state.pages.at(-1)?.next_cursor : undefined;
  const more = async () => {
    setBusy(true);
    try {
      const page = await ask<P>(addCursor(path!, cursor!));
      setState((last) => (last.path === path ? { path, pages: [...last.pages, page] } : last));
    } catch (thrown) {
      setState((last) => ({ ...last, error: asError(thrown) }));
    }
    setBusy(false);
  };
  return {
    pages: state.path === path ? state.pages : [],
    error: state.path === path ? state.error : undefined,
    isLoading: isBusy || (path !== undefined && state.path !== path),
    more: cursor ? onEvent(more) : undefined,
    again: () => {
      setState({ pages: [] });
      setRound((last) => last + 1);
    },
  };
}

function addCursor(path: string, cursor: string): string {
  const [plain, search] = path.split("?") as [string, string | undefined];
  return withQuery(plain, { ...Object.fromEntries(new URLSearchParams(search)), cursor });
}

export function More({ of: { more, isLoading } }: { of: Pick<Pages<PageOf>, "more" | "isLoading"> }) {
  if (more === undefined) return null;
  return (
    <button type="button" onClick={more} disabled={isLoading}>
      {isLoading ? "Reading…" : "Show more"}
    </button>
  );
}

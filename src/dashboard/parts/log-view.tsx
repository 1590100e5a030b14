/** A log, live: the newest lines at the end, which stays in view unless the person scrolls up. */
import { useEffect, useRef, useState } from "preact/hooks";
import { asError } from "../server/problem.ts";
import { send } from "../server/request.ts";
import { ErrorNote } from "./notes.tsx";

/** Older lines leave the page. The whole log is a download. */
const LINES_MAX = 2000;
const DRAW_EVERY_MS = 100;

export function LogView({ path, label, isLive = true }: { path: string; label: string; isLive?: boolean }) {
  const [filter, setFilter] = useState("");
  const { lines, error, isOver } = useLines(path, isLive);
  const box = useRef<HTMLElement>(null);
  const isAtEnd = useRef(true);
  const shown =
    filter === "" ? lines : lines.filter((line) => line.toLowerCase().includes(filter.toLowerCase()));
  useEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown.length, lines]);
  return (
    <div class="log">
      <div class="filters">
        <label class="field">
          Only lines with
          <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        </label>
        <span class="quiet">
          {shown.length === lines.length
            ? `${lines.length} lines`
            : `${shown.length} of ${lines.length} lines`}
          {isOver ? "" : ", live"}
        </span>
      </div>
      {error && <ErrorNote error={error} />}
      <section
        ref={box}
        class={isLive ? "scroll" : "scroll ended"}
        tabIndex={0}
        aria-label={label}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          isAtEnd.current = scrollTop + clientHeight > scrollHeight - 24;
        }}
      >
        <pre>{lines.length === 0 ? (isOver ? "the log is empty" : "no line yet") : shown.join("\n")}</pre>
      </section>
    </div>
  );
}

function useLines(path: string, isLive: boolean) {
  const [state, setState] = useState<{ lines: string[]; error?: Error; isOver: boolean }>({
    lines: [],
    isOver: false,
  });
  useEffect(() => {
    const left = new AbortController();
    let lines: string[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        if (!left.signal.aborted) setState((last) => ({ ...last, lines }));
      }, DRAW_EVERY_MS);
    };
    const add = (more: readonly string[]) => {
      lines = [...lines, ...more].slice(-LINES_MAX);
      draw();
    };
    setState({ lines: [], isOver: false });
    readLines(isLive ? `${path}?follow=true` : path, left.signal, add)
      .catch((thrown) => left.signal.aborted || setState((last) => ({ ...last, error: asError(thrown) })))
      .finally(() => left.signal.aborted || setState((last) => ({ ...last, lines, isOver: true })));
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [path, isLive]);
  return state;
}

async function readLines(
  path: string,
  signal: AbortSignal,
  add: (lines: readonly string[]) => void,
): Promise<void> {
  const response = await send(path, { headers: { accept: "text/plain" }, signal });
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop()!;
    if (lines.length > 0) add(lines);
  }
  if (rest !== "") add([rest]);
}

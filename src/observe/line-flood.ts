/**
 * In a flood of lines of one kind, writes the first lines and counts the rest, so that the flood does not fill the
 * disk.
 */
import { FLOOD_KINDS_MAX, FLOOD_LINES_MAX, FLOOD_WINDOW_MS } from "../contracts/limits/logs.ts";

interface Window<Line> {
  lines: number;
  more: number;
  last: Line;
  timer: NodeJS.Timeout;
}

const OTHERS = "(others)";

export class LineFlood<Line> {
  private readonly write: (line: Line, more: number) => void;
  private readonly windows = new Map<string, Window<Line>>();

  /**
   * `more`: how many lines of the kind came since then, of which `line` is the last. 0 for a line that counts only
   * itself.
   */
  constructor(write: (line: Line, more: number) => void) {
    this.write = write;
  }

  record(kind: string, line: Line): void {
    const key = this.windows.has(kind) || this.windows.size < FLOOD_KINDS_MAX ? kind : OTHERS;
    const window = this.windows.get(key);
    if (window === undefined) this.open(key, line);
    else if (window.lines++ < FLOOD_LINES_MAX) this.write(line, 0);
    else Object.assign(window, { more: window.more + 1, last: line });
  }

  /** Writes the lines that were only counted so far. */
  flush(): void {
    for (const kind of [...this.windows.keys()]) this.close(kind);
  }

  private open(kind: string, line: Line): void {
    this.write(line, 0);
    const timer = setTimeout(() => this.close(kind), FLOOD_WINDOW_MS).unref();
    this.windows.set(kind, { lines: 1, more: 0, last: line, timer });
  }

  private close(kind: string): void {
    const { more, last, timer } = this.windows.get(kind)!;
    clearTimeout(timer);
    this.windows.delete(kind);
    if (more > 0) this.write(last, more);
  }
}

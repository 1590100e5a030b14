/** Reads a response that never ends, line by line. */
import { get } from "node:http";

export interface LineReader {
  onOpen: () => void;
  /** Returns false to end the connection. */
  onLine: (line: string) => boolean;
  /** Called after the lines that came together. */
  onRead: () => void;
}

/** Resolves when the connection has ended. */
export function followLines(
  from: { socketPath: string; path: string },
  { onOpen, onLine, onRead }: LineReader,
): Promise<void> {
  return new Promise((resolve) => {
    const request = get(from, (response) => {
      onOpen();
      const lines = new LineCutter();
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        const whole = lines.cut(text);
        const goesOn = whole.every(onLine);
        if (whole.length > 0) onRead();
        if (!goesOn) request.destroy();
      });
      response.on("close", resolve);
      response.on("error", () => resolve());
    });
    request.on("error", () => resolve());
    request.setTimeout(0);
  });
}

/** Cuts text into lines. The pieces of a long line are joined once, when its end is here. */
export class LineCutter {
  private pieces: string[] = [];

  /** The lines that end in this text. */
  cut(text: string): string[] {
    const lines = text.split("\n");
    const rest = lines.pop()!;
    if (lines.length > 0) {
      lines[0] = this.pieces.join("") + lines[0]!;
      this.pieces = [];
    }
    if (rest !== "") this.pieces.push(rest);
    return lines;
  }
}

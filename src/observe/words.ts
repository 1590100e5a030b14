/** Messages of the server's processes to people, line by line on standard error. Their logs go through base/log.ts. */
import { printable } from "../base/printable.ts";

/** One message. It may contain text from others, such as a path. */
export function say(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** The reader of stderr has left, or the disk of its file is full. Ending the process would help nobody. */
export function outliveReaders(): void {
  process.stderr.on("error", () => {});
}

/** What processes of the server say to people, on standard error, line by line. Their logs go through base/log.ts. */
import { printable } from "../base/printable.ts";

/** One message. It may hold text of others, such as a path. */
export function say(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Whoever read our words has left, or their file's disk is full: nobody is served better by our end. */
export function outliveReaders(): void {
  process.stderr.on("error", () => {});
}

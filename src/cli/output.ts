/**
 * The only way from the command line to its terminal, files and pipes. Whatever is printed may hold text of others: of user code, of
 * errors, of names, of other servers. What a terminal would obey is escaped here, also in a pipe, whose end may be a terminal; JSON stays
 * the same JSON. Only what moves the cursor for bars and `-w` is ours, and is made here.
 */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { printable, printableLine } from "../base/printable.ts";

const LINE_START = "\r\x1b[2K";
const CLEAR_SCREEN = "\x1b[H\x1b[2J";

export class Output {
  private readonly isQuiet: boolean;

  /** Quiet: data only. */
  constructor(isQuiet: boolean) {
    this.isQuiet = isQuiet;
  }

  /** Data. Resolves when more may be printed; callers that print little may ignore it. */
  async out(text: string): Promise<void> {
    if (!process.stdout.write(printable(text))) await once(process.stdout, "drain");
  }

  /** The same for little of it, such as help. */
  print(text: string): void {
    process.stdout.write(printable(text));
  }

  /** Data in place of what was printed before, on a terminal; elsewhere after it, with an empty line between. */
  async outAnew(text: string): Promise<void> {
    if (process.stdout.isTTY !== true) return this.out(`${text}\n`);
    process.stdout.write(CLEAR_SCREEN);
    await this.out(text);
  }

  /** Progress, hints, messages. */
  err(text: string): void {
    if (!this.isQuiet) this.fail(text);
  }

  /** In place of the line that is being printed; for terminals only. */
  errLine(text: string): void {
    if (!this.isQuiet) process.stderr.write(LINE_START + printableLine(text));
  }

  /** What is said also where only data is wanted: why a command failed. */
  fail(text: string): void {
    process.stderr.write(printable(text));
  }

  /** Asks for a line. */
  async ask(question: string): Promise<string> {
    this.fail(question);
    const lines = createInterface({ input: process.stdin });
    const answer = await Promise.race([
      once(lines, "line").then(([line]) => String(line)),
      once(lines, "close").then(() => ""),
    ]);
    lines.close();
    return answer;
  }
}

/** Whether bars and colours are seen by anybody. */
export function isErrTerminal(): boolean {
  return process.stderr.isTTY === true;
}

/** Whether a person reads both what is data and what is not. */
export function isTerminal(): boolean {
  return process.stdout.isTTY === true && isErrTerminal();
}

/** `onClosed`: whoever read our data has left, as in `quern logs … | head`, which is nobody's fault. */
export function watchReader(onClosed: () => void): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    onClosed();
  });
}

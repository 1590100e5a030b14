/**
 * The only way from the command line to its terminal, files and pipes. The output may contain other people's text: of
 * user code, errors, names and other servers. Control characters are escaped here, even in a pipe, which may end at a
 * terminal. JSON stays the same JSON. Only this file sends control sequences, for bars and `-w`.
 */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { printable, printableLine } from "../../base/printable.ts";

const LINE_START = "\r\x1b[2K";
const CLEAR_SCREEN = "\x1b[H\x1b[2J";

export class Output {
  private readonly isQuiet: boolean;

  /** `isQuiet`: print data only. */
  constructor(isQuiet: boolean) {
    this.isQuiet = isQuiet;
  }

  /** Prints data. Resolves when more can be printed; callers that print little may ignore it. */
  async out(text: string): Promise<void> {
    if (!process.stdout.write(printable(text))) await once(process.stdout, "drain");
  }

  /** Writes bytes that no terminal shows. Resolves when more can be written. */
  async outBytes(bytes: Uint8Array): Promise<void> {
    if (!process.stdout.write(bytes)) await once(process.stdout, "drain");
  }

  /** Prints a little data, such as help, without waiting. */
  print(text: string): void {
    process.stdout.write(printable(text));
  }

  /**
   * Prints data in place of the previous output on a terminal. Otherwise prints it after that, with an empty line
   * between.
   */
  async outAnew(text: string): Promise<void> {
    if (process.stdout.isTTY !== true) return this.out(`${text}\n`);
    process.stdout.write(CLEAR_SCREEN);
    await this.out(text);
  }

  /** Prints progress, hints and messages. */
  err(text: string): void {
    if (!this.isQuiet) this.fail(text);
  }

  /** Replaces the current line; for terminals only. */
  errLine(text: string): void {
    if (!this.isQuiet) process.stderr.write(LINE_START + printableLine(text));
  }

  /** Prints even in quiet mode: the reason why a command failed. */
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

/** Whether bars and colours are visible. */
export function isErrTerminal(): boolean {
  return process.stderr.isTTY === true;
}

/** Whether a person reads both data and messages. */
export function isTerminal(): boolean {
  return process.stdout.isTTY === true && isErrTerminal();
}

/**
 * `onClosed` is called when the reader of data closed the pipe, as in `quern logs … | head`, which is no error; `onFailed`
 * when data could not be written. Messages that nobody reads change nothing about the result.
 */
export function watchReaders(onClosed: () => void, onFailed: (error: Error) => void): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) =>
    error.code === "EPIPE" ? onClosed() : onFailed(error),
  );
  process.stderr.on("error", () => {});
}

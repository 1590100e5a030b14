/** Asks before something is lost. */
import { createInterface } from "node:readline/promises";
import { type CliContext, CliError, EXIT } from "./context.ts";

/** Asks on a terminal; a script is not asked. */
export async function confirm({ isInteractive, isYes }: CliContext, question: string): Promise<void> {
  if (isYes || !isInteractive || process.stdin.isTTY !== true) return;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${question} [y/N] `);
  terminal.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError("nothing was deleted", EXIT.failed);
}

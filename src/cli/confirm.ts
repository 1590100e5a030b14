/** Asks before something is lost. */
import { type CliContext, CliError, EXIT } from "./context.ts";

/** Asks on a terminal; a script is not asked. */
export async function confirm({ isInteractive, isYes, ask }: CliContext, question: string): Promise<void> {
  if (isYes || !isInteractive || process.stdin.isTTY !== true) return;
  const answer = await ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError("nothing was deleted", EXIT.failed);
}

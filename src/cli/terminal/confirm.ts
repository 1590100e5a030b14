/** Asks for confirmation before something is deleted. */
import { type CliContext, CliError, EXIT } from "../server/context.ts";

/** Asks only on a terminal, never in a script. */
export async function confirm({ isInteractive, isYes, ask }: CliContext, question: string): Promise<void> {
  if (isYes || !isInteractive || process.stdin.isTTY !== true) return;
  const answer = await ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError("nothing was changed", EXIT.failed);
}

/** `-w`: prints again every two seconds until it is interrupted. On a terminal it replaces the previous output. */
import type { CliContext } from "../server/context.ts";

const EVERY_MS = 2_000;

export async function watched(
  context: CliContext,
  print: (context: CliContext) => Promise<number>,
): Promise<number> {
  if (!context.isWatch) return print(context);
  for (;;) {
    let text = "";
    await print({
      ...context,
      out: async (more) => {
        text += more;
      },
    });
    await context.outAnew(text);
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

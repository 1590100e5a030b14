/** `-w`: prints again every two seconds, on a terminal in place, until it is interrupted. */
import type { CliContext } from "./context.ts";

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

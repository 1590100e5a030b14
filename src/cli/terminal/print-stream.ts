/** Prints a response as it arrives, no faster than the reader accepts it. */
import type { RequestOptions } from "../server/client.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";

export async function printStream(context: CliContext, path: string, options: RequestOptions): Promise<void> {
  const response = await context.client.request(path, options);
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>)
      await context.out(decoder.decode(chunk, { stream: true }));
  } catch (error) {
    throw new CliError(
      `the response was cut off (${(error as Error).message}); the server was restarted, or its log says why`,
      EXIT.failed,
    );
  }
}

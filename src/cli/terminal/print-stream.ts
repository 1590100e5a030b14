/** Prints a response as it arrives, no faster than the reader accepts it, or writes it to a file. */
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { RequestOptions } from "../server/client.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";

export async function printStream(context: CliContext, path: string, options: RequestOptions): Promise<void> {
  const response = await context.client.request(path, options);
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response as AsyncIterable<Uint8Array>)
      await context.out(decoder.decode(chunk, { stream: true }));
  } catch (error) {
    throw cutOff(error as Error);
  }
}

/** Writes the response to a file as the server sent it; `-` prints it. */
export async function exportStream(
  context: CliContext,
  path: string,
  file: string,
  options: RequestOptions,
): Promise<void> {
  if (file === "-") return printStream(context, path, options);
  const response = await context.client.request(path, options);
  const out = createWriteStream(file);
  await pipeline(response as AsyncIterable<Uint8Array>, out).catch((error: NodeJS.ErrnoException) => {
    throw out.errored === error && error.code?.startsWith("E") && error.path === file ? error : cutOff(error);
  });
  context.err(`wrote ${file}\n`);
}

function cutOff(error: Error): CliError {
  return new CliError(
    `the response was cut off (${error.message}); the server was restarted, or its log says why`,
    EXIT.failed,
  );
}

/** The lines of a response. An untrusted server may send one without end. */
import { StringDecoder } from "node:string_decoder";
import { CliError, EXIT } from "./context.ts";

/** A line has a part of an output and its differences, which are few. */
export const LINE_CHARACTERS_MAX = 1024 * 1024;

/** Without their ends, in order. Ends early if a line is too long: the last one that it gives is `undefined`. */
export async function* linesOf(response: AsyncIterable<Buffer>): AsyncGenerator<string | undefined> {
  const decoder = new StringDecoder();
  let rest = "";
  for await (const chunk of chunksOf(response)) {
    const lines = (rest + decoder.write(chunk)).split("\n");
    rest = lines.pop()!;
    for (const line of lines) yield line.length > LINE_CHARACTERS_MAX ? undefined : line;
    // Leaving the loop closes the connection.
    if (rest.length > LINE_CHARACTERS_MAX) return yield undefined;
  }
  rest += decoder.end();
  if (rest !== "") yield rest;
}

async function* chunksOf(response: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* response;
  } catch (error) {
    throw new CliError(
      `the response was cut off (${(error as Error).message}); try again, or read the server's log`,
      EXIT.failed,
    );
  }
}

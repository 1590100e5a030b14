/** JSON that may be long: in one piece if it turns out short, otherwise streamed as it is produced. */
import type { Context } from "hono";
import { TimeSlices } from "../../base/loop/turns.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import { LIST_AT_ONCE_CHARACTERS } from "../../contracts/limits/responses.ts";
import type { Pass } from "../requests/reads-in-turn.ts";
import type { OpenStreams } from "./open-streams.ts";
import { jsonText } from "./stream-text.ts";

/** Shared by all responses that are not streamed yet. */
const SLICES = new TimeSlices(SLICE_MS);

/**
 * Throws what the first chunks throw, and `rate_limited` if it is long and the caller reads too many lists. `pass` is
 * awaited after each chunk.
 */
export async function jsonChunks(
  c: Context,
  lists: OpenStreams,
  chunks: AsyncGenerator<string>,
  pass: Pass = async () => {},
): Promise<Response> {
  const begun: string[] = [];
  for (let characters = 0; characters <= LIST_AT_ONCE_CHARACTERS; ) {
    const { value, done } = await chunks.next();
    if (done) return jsonText(begun.join(""));
    begun.push(value);
    characters += value.length;
    await pass();
    if (SLICES.isOver) await SLICES.rest();
  }
  return lists.answer(c, allOf(begun, chunks), "application/json");
}

async function* allOf(begun: string[], others: AsyncGenerator<string>): AsyncGenerator<string> {
  for (let chunk = begun.shift(); chunk !== undefined; chunk = begun.shift()) yield chunk;
  yield* others;
}

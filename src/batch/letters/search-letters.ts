/**
 * Reads and searches the messages of a queue, oldest first. A queue may have gigabytes: few messages are in memory, and
 * others have the event loop between two slices of the work.
 */
import { TimeSlices } from "../../base/loop/turns.ts";
import { MESSAGES_SEARCHED_BYTES } from "../../contracts/limits/responses.ts";
import type { DeadLetterAttributes } from "../../contracts/queues.ts";
import type { Statements } from "../../database/database.ts";
import { type DeadLetter, lettersOf } from "./letters.ts";

/** Few: a message has up to 256 KiB. */
const LETTERS_AT_ONCE = 16;
/** Searching a message takes up to 0.2 ms. All searches share these slices. */
const SLICES = new TimeSlices(2);

export interface DeadLetterPage {
  /** Undefined now and then in a search, while nothing is found. */
  letters: AsyncGenerator<DeadLetter | undefined>;
  /** The start of the next page; known once the last message was read. */
  next: string | null;
}

/** Whether a message's body, or the type, message or traceback of its error, has this text. */
export function hasText({ body, attributes_json }: DeadLetter, search: Buffer, text: string): boolean {
  if (Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(search)) return true;
  const { error } = JSON.parse(attributes_json) as Partial<DeadLetterAttributes>;
  if (error === undefined) return false;
  const { type, message, traceback } = JSON.parse(error) as Record<string, string>;
  return [`${type}: ${message}`, traceback].some((part) => part?.includes(text));
}

/** A page ends at `limit` messages, or after so many bytes that were searched: `next` is where it goes on. */
export function pageOfLetters(
  db: Statements,
  queue: string,
  asked: { after: string; limit: number; search: string | undefined },
): DeadLetterPage {
  const page: DeadLetterPage = {
    letters: lettersAfter(db, queue, asked, (next) => (page.next = next)),
    next: null,
  };
  return page;
}

async function* lettersAfter(
  db: Statements,
  queue: string,
  { after, limit, search }: { after: string; limit: number; search: string | undefined },
  endAt: (last: string) => void,
): AsyncGenerator<DeadLetter | undefined> {
  let left = limit;
  let last = after;
  let bytes = 0;
  const atOnce = search === undefined ? Math.min(LETTERS_AT_ONCE, limit + 1) : LETTERS_AT_ONCE;
  for await (const letter of searched(db, queue, { after, search, atOnce })) {
    if (left === 0 || bytes > MESSAGES_SEARCHED_BYTES) return endAt(last);
    last = letter.message_id;
    if (letter.isFound) {
      left--;
      yield letter;
    } else {
      bytes += letter.body.byteLength + letter.attributes_json.length;
      yield undefined;
    }
  }
}

/** The ids of all messages that match; undefined if they are more than `most`. */
export async function idsOfLetters(
  db: Statements,
  queue: string,
  search: string | undefined,
  most: number,
): Promise<string[] | undefined> {
  const ids: string[] = [];
  if (search === undefined) {
    const rows = await db.all<{ message_id: string }>(
      "SELECT message_id FROM letters WHERE queue = ? ORDER BY message_id LIMIT ?",
      [queue, most + 1],
    );
    ids.push(...rows.map(({ message_id }) => message_id));
  } else
    for await (const { isFound, message_id } of searched(db, queue, {
      after: "",
      search,
      atOnce: LETTERS_AT_ONCE,
    })) {
      if (isFound) ids.push(message_id);
      if (ids.length > most) break;
    }
  return ids.length > most ? undefined : ids;
}

/** All messages after `after`; without a search, each is found. */
async function* searched(
  db: Statements,
  queue: string,
  { after, search, atOnce }: { after: string; search: string | undefined; atOnce: number },
): AsyncGenerator<DeadLetter & { isFound: boolean }> {
  const bytes = Buffer.from(search ?? "");
  for (let last = after; ; ) {
    const letters = await lettersOf(db, queue, last, atOnce);
    for (const letter of letters) {
      if (search !== undefined && SLICES.isOver) await SLICES.rest();
      yield { ...letter, isFound: search === undefined || hasText(letter, bytes, search) };
    }
    if (letters.length < atOnce) return;
    last = letters.at(-1)!.message_id;
  }
}

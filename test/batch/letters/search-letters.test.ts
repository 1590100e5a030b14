/** The search in the messages of a queue: bounded, and in slices. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeLetter, saveLetter } from "../../../src/batch/letters/letters.ts";
import { idsOfLetters, pageOfLetters } from "../../../src/batch/letters/search-letters.ts";
import { MESSAGES_SEARCHED_BYTES } from "../../../src/contracts/limits/responses.ts";
import { type TemporaryDatabase, temporaryDatabase } from "../../harness/temporary-database.ts";

const MIB = 1024 * 1024;

describe("a search in messages", () => {
  let opened: TemporaryDatabase;
  beforeEach(async () => {
    opened = await temporaryDatabase();
  });
  afterEach(() => opened.remove());

  const save = async (body: string | Buffer, message = "no good") => {
    const about = { queue: "q", api_name: "a", job_id: "j", batch_index: 0, round: 1, receiveCount: 1 };
    const error = { type: "ValueError", message, traceback: 'File "p.py", line 1' };
    const letter = makeLetter({ ...about, body: Buffer.from(body), error });
    await saveLetter(opened.db, letter);
    return letter.message_id;
  };
  const read = async (search: string | undefined, limit: number, after = "") => {
    const page = pageOfLetters(opened.db, "q", { after, limit, search });
    const ids: string[] = [];
    for await (const letter of page.letters) if (letter !== undefined) ids.push(letter.message_id);
    return { ids, next: page.next };
  };

  it("finds what is in items and in errors, also in a page of one", async () => {
    const ids = [
      await save('["é"]'),
      await save("[1]", 'row "7"\nis bad'),
      await save("[2]"),
      await save('["é"]'),
    ];
    expect(await read("é", 10)).toEqual({ ids: [ids[0], ids[3]], next: null });
    expect(await read('"7"\nis', 10)).toEqual({ ids: [ids[1]], next: null });
    const first = await read("é", 1);
    expect(first.ids).toEqual([ids[0]]);
    expect((await read("é", 1, first.next!)).ids).toEqual([ids[3]]);
    expect(await read(undefined, 3)).toEqual({ ids: ids.slice(0, 3), next: ids[2] });
    expect(await idsOfLetters(opened.db, "q", "é", 2)).toEqual([ids[0], ids[3]]);
    expect(await idsOfLetters(opened.db, "q", "é", 1)).toBeUndefined();
    expect(await idsOfLetters(opened.db, "q", undefined, 4)).toEqual(ids);
    expect(await idsOfLetters(opened.db, "q", undefined, 3)).toBeUndefined();
  });

  it("ends a page after so many bytes, and goes on at its cursor", async () => {
    const body = Buffer.alloc(8 * MIB, "x");
    for (let bytes = 0; bytes <= MESSAGES_SEARCHED_BYTES; bytes += body.length) await save(body);
    const wanted = [await save("[1]", "needle"), await save("[2]", "needle")];
    const first = await read("needle", 10);
    expect(first.ids).toEqual([]);
    expect(await read("needle", 10, first.next!)).toEqual({ ids: wanted, next: null });
  }, 60_000);
});

/** Texts as server-sent events: what is sent of them in one turn of the event loop, and what waits. */
import type { ServerResponse } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { STREAM_PIECE_BYTES, TEXT_OF_A_TURN_BYTES } from "../../../src/contracts/limits/frames.ts";
import { EventTexts, eventLines } from "../../../src/gateway/answers/event-texts.ts";
import { StreamedAnswer } from "../../../src/gateway/answers/streamed-answer.ts";
import { TextTurn } from "../../../src/gateway/answers/text-turn.ts";

const LONG = TEXT_OF_A_TURN_BYTES * 3 + 1;
/** A slice of line ends, with what is before and after an event. */
const SLICE_BYTES_MAX = 7 * TEXT_OF_A_TURN_BYTES + 8;

const asEvent = (text: string) => `data: ${text.replaceAll(/\r\n|\r|\n/g, "\ndata: ")}\n\n`;
const lines = fc.string({ unit: fc.constantFrom("\r", "\n", "é", "x"), maxLength: 40 });

describe("the data of an event", () => {
  it("has a line for each line of the text, however it ends", () => {
    fc.assert(
      fc.property(lines, (text) => {
        expect(`data: ${eventLines(Buffer.from(text)).toString()}\n\n`).toBe(asEvent(text));
      }),
    );
  });

  it("is the same for a text that came in parts, and does not affect the next text", () => {
    fc.assert(
      fc.property(fc.array(fc.array(lines, { minLength: 1 }), { minLength: 1 }), (given) => {
        const texts = new EventTexts();
        for (const parts of given) texts.push(parts.map((part) => Buffer.from(part)));
        const bytes = given.flat().reduce((sum, part) => sum + Buffer.byteLength(part), 0);
        expect(texts.windowBytes).toBe(bytes + given.length * STREAM_PIECE_BYTES);
        let sent = "";
        while (!texts.isEmpty) sent += texts.next().event.toString("latin1");
        expect(Buffer.from(sent, "latin1").toString()).toBe(
          given.map((parts) => asEvent(parts.join(""))).join(""),
        );
        expect(texts.windowBytes).toBe(0);
      }),
    );
  });

  it("is taken in slices, also of one long part", () => {
    const texts = new EventTexts();
    texts.push([Buffer.alloc(LONG, "\r\n")]);
    const slices: number[] = [];
    while (!texts.isEmpty) slices.push(texts.next().bytes);
    expect(slices).toEqual([...Array(3).fill(TEXT_OF_A_TURN_BYTES), 1]);
  });
});

describe("a turn", () => {
  const turns: (() => void)[] = [];
  const nextTurn = (begin: () => void) => turns.push(begin);
  const handled: string[] = [];
  const wait = (texts: TextTurn, owner: string, bytes = TEXT_OF_A_TURN_BYTES) =>
    texts.wait(owner, {
      handle: () => {
        handled.push(owner);
        return bytes;
      },
      fail: () => handled.push(`not ${owner}`),
    });

  it("handles a bounded number of bytes, of the owners in turn", () => {
    const texts = new TextTurn(nextTurn);
    expect([texts.take(TEXT_OF_A_TURN_BYTES), texts.take(1)]).toEqual([true, false]);
    for (const owner of ["a", "a", "a", "b"]) wait(texts, owner, TEXT_OF_A_TURN_BYTES / 2);
    expect(turns).toHaveLength(1);
    turns.shift()!();
    expect(handled).toEqual(["a", "b"]);
    expect(texts.take(1)).toBe(false);
    turns.shift()!();
    expect(handled.splice(0)).toEqual(["a", "b", "a", "a"]);
    turns.shift()!();
    expect([turns.length, texts.take(1)]).toEqual([0, true]);
    turns.length = 0;
  });

  it("survives a text that throws, whose stream ends", () => {
    const texts = new TextTurn(nextTurn);
    texts.wait("a", { handle: () => expect.unreachable(), fail: () => handled.push("not a") });
    wait(texts, "b");
    turns.shift()!();
    expect(handled.splice(0)).toEqual(["not a", "b"]);
  });
});

function stream() {
  const writes: Buffer[] = [];
  const granted: number[] = [];
  const onDrain: (() => void)[] = [];
  let ends = 0;
  const response = {
    destroyed: false,
    writableNeedDrain: false,
    writableLength: 0,
    req: { socket: { remoteAddress: "::1" } },
    getHeaderNames: () => [],
    writeHead: () => {},
    on: (_name: string, listener: () => void) => onDrain.push(listener),
    write: (bytes: Buffer | string) => writes.push(Buffer.from(bytes as string)),
    end: () => ends++,
    destroy: () => {
      response.destroyed = true;
    },
  };
  const answer = new StreamedAnswer(response as unknown as ServerResponse, 200, [], "text events", (bytes) =>
    granted.push(bytes),
  );
  const drain = (isFull: boolean) => {
    response.writableNeedDrain = isFull;
    if (!isFull) for (const listener of onDrain) listener();
  };
  const text = () => Buffer.concat(writes).toString();
  return { answer, response, writes, granted, drain, text, ends: () => ends };
}

describe("a stream of texts", () => {
  it("sends a long text over many turns, with the pieces after it and its end behind", async () => {
    const { answer, writes, granted, text, ends } = stream();
    answer.write(Buffer.from("a\nb"));
    answer.writeLong([Buffer.alloc(LONG, "\n"), Buffer.from("c")]);
    answer.write(Buffer.from("d"));
    answer.write(Buffer.alloc(0));
    answer.end();
    expect([text(), ends()]).toEqual(["data: a\ndata: b\n\n", 0]);
    const after = asEvent(`${"\n".repeat(LONG)}c`) + asEvent("d") + asEvent("");
    for (let turns = 0; ends() === 0; turns++) {
      const bytes = text().length;
      await turn();
      expect(text().length - bytes).toBeLessThanOrEqual(SLICE_BYTES_MAX + "data: d\n\ndata: \n\n".length);
      expect(turns).toBeLessThan(6);
    }
    expect(text() === `data: a\ndata: b\n\n${after}`).toBe(true);
    expect(Math.max(...writes.map(({ length }) => length))).toBeLessThanOrEqual(SLICE_BYTES_MAX);
    // Only what was taken before the end came: its worker waits for no more.
    expect(granted).toEqual([3 + STREAM_PIECE_BYTES]);
  });

  it("has its window open slice by slice, when the client takes them", async () => {
    const { answer, writes, granted, drain } = stream();
    drain(true);
    answer.writeLong([Buffer.alloc(LONG, "\n")]);
    await turn();
    expect([writes.length, granted, answer.isFull]).toEqual([0, [], true]);
    drain(false);
    await turn();
    drain(true);
    await turn();
    expect(writes).toHaveLength(2);
    expect(granted).toEqual([TEXT_OF_A_TURN_BYTES]);
    drain(false);
    for (let turns = 0; turns < 4; turns++) await turn();
    expect(granted.reduce((sum, bytes) => sum + bytes)).toBe(LONG + STREAM_PIECE_BYTES);
    expect([writes.length, answer.isFull]).toEqual([4, false]);
  });

  it("takes turns with other streams", async () => {
    const streams = [stream(), stream(), stream()];
    for (const { answer } of streams) answer.write(Buffer.alloc(4 * TEXT_OF_A_TURN_BYTES, "\n"));
    const written = () => streams.reduce((sum, { writes }) => sum + writes.length, 0);
    for (let turns = 1; turns <= 12; turns++) {
      await turn();
      expect(written()).toBeLessThanOrEqual(turns);
    }
    expect(streams.map(({ writes }) => writes.length)).toEqual([4, 4, 4]);
  });

  it("sends nothing more once the client has left", async () => {
    const { answer, response, writes, ends } = stream();
    answer.write(Buffer.alloc(LONG, "\n"));
    await turn();
    answer.end();
    response.destroyed = true;
    for (let turns = 0; turns < 4; turns++) await turn();
    expect([writes.length, ends()]).toEqual([1, 0]);
  });

  it("reports an error after the texts before it", async () => {
    const { answer, text } = stream();
    answer.write(Buffer.alloc(LONG, "x"));
    answer.fail({ code: "worker_died" } as unknown as Parameters<typeof answer.fail>[0]);
    for (let turns = 0; turns < 5; turns++) await turn();
    expect(text().slice(LONG + 6)).toBe('\n\nevent: error\ndata: {"code":"worker_died"}\n\n');
  });
});

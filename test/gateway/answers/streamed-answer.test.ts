/** An answer in pieces: what is sent, and when its worker gets more window. */
import type { ServerResponse } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { STREAM_PIECE_BYTES, STREAM_WRITE_BYTES } from "../../../src/contracts/limits/frames.ts";
import { StreamedAnswer } from "../../../src/gateway/answers/streamed-answer.ts";

function stream(format: "events" | "lines" | "raw") {
  const writes: string[] = [];
  const granted: number[] = [];
  const response = {
    destroyed: false,
    writableNeedDrain: false,
    writableLength: 0,
    getHeaderNames: () => [],
    writeHead: () => {},
    on: () => {},
    write: (bytes: Buffer) => writes.push(bytes.toString()),
    end: () => writes.push("the end"),
  };
  const answer = new StreamedAnswer(response as unknown as ServerResponse, 200, [], format, (bytes) =>
    granted.push(bytes),
  );
  return { answer, response, writes, granted };
}

describe("pieces of a stream", () => {
  it("leave together if they came in one turn, and the window opens for each", async () => {
    const { answer, writes, granted } = stream("lines");
    for (let n = 0; n < 1000; n++) answer.write(Buffer.from("1"));
    expect([writes, granted]).toEqual([[], []]);
    await turn();
    expect([writes, granted]).toEqual([["1\n".repeat(1000)], [1000 * (1 + STREAM_PIECE_BYTES)]]);
    answer.end();
    expect(writes.at(-1)).toBe("the end");
  });

  it("leave before the end of the turn if they are large", () => {
    const { answer, writes } = stream("raw");
    answer.write(Buffer.alloc(STREAM_WRITE_BYTES, "x"));
    expect(writes.map((text) => text.length)).toEqual([STREAM_WRITE_BYTES]);
  });

  it("leave before the stream's end", () => {
    const { answer, writes } = stream("events");
    answer.write(Buffer.from("1"));
    answer.end();
    expect(writes).toEqual(["data: 1\n\n", "the end"]);
  });

  it("wait while the client does not read, and get no window then or after it has left", async () => {
    const { answer, response, writes, granted } = stream("lines");
    response.writableNeedDrain = true;
    answer.write(Buffer.from("1"));
    await turn();
    expect([writes, answer.waitingBytes]).toEqual([[], 1 + STREAM_PIECE_BYTES]);
    response.destroyed = true;
    response.writableNeedDrain = false;
    answer.write(Buffer.from("2"));
    await turn();
    expect([writes, granted]).toEqual([[], []]);
  });
});

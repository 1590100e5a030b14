/** What a caller believes of a worker's reports: nothing that would harm others. */
import { describe, expect, it } from "vitest";
import {
  FRAME_BODY_BYTES_MAX,
  RESULT_BYTES_MAX,
  RESULT_HEAD_BYTES_MAX,
} from "../../src/contracts/limits/frames.ts";
import { decodeAck } from "../../src/protocol/ack.ts";
import { ProtocolError } from "../../src/protocol/frame-rules.ts";
import { LongBodyReceiver } from "../../src/protocol/long-bodies.ts";
import { MESSAGE } from "../../src/protocol/messages.ts";
import { readFault } from "../../src/protocol/read-fault.ts";
import { readResult, UnreadableHead } from "../../src/protocol/read-heads.ts";
import { isReady, readReady } from "../../src/protocol/set-up-report.ts";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

describe("a READY", () => {
  it.each([
    '{"wants":[],"is_async":false,"has_on_job_complete":true}',
    '{"wants":["headers","query_params"],"is_async":true}',
  ])("that a worker sends is read: %s", (text) => {
    expect(readReady(Buffer.from(text))).toEqual(JSON.parse(text));
  });

  it.each([
    "",
    "null",
    "[]",
    "{}",
    '{"wants":"headers","is_async":false}',
    '{"wants":["cookies"],"is_async":false}',
    '{"wants":["headers","headers","headers"],"is_async":false}',
    '{"wants":[],"is_async":"yes"}',
    `{"wants":${nested(100_000)},"is_async":false}`,
  ])("that no worker sends breaks the protocol: %.60s", (text) => {
    expect(() => readReady(Buffer.from(text))).toThrow(ProtocolError);
  });

  it("may be part of a WELCOME", () => {
    expect([isReady({ wants: ["headers"], connection: 1 }), isReady({ connection: 1 })]).toEqual([
      true,
      false,
    ]);
  });
});

describe("a RESULT", () => {
  const resultOf = (head: string) => {
    const start = Buffer.alloc(8);
    start.writeUInt32LE(Buffer.byteLength(head), 4);
    return Buffer.concat([start, Buffer.from(head), Buffer.from("1")]);
  };
  const padded = (bytes: number) => `{}${" ".repeat(bytes - 2)}`;

  it("has a head that is parsed in a moment", () => {
    expect(readResult(resultOf(padded(RESULT_HEAD_BYTES_MAX)))).toMatchObject({ head: {} });
    expect(readResult(resultOf(padded(RESULT_HEAD_BYTES_MAX + 1)))).toBeInstanceOf(UnreadableHead);
    expect(readResult(resultOf(`{"x":${nested(1_000)}}`))).toBeInstanceOf(UnreadableHead);
  });

  it("is never so long that joining it takes time", () => {
    const receiver = new LongBodyReceiver({ expects: () => true, grant: () => {} });
    const frame = Buffer.alloc(FRAME_BODY_BYTES_MAX);
    for (let bytes = 0; bytes < RESULT_BYTES_MAX; bytes += frame.length)
      receiver.take(MESSAGE.RESULT, 1, 7, frame);
    expect(() => receiver.take(MESSAGE.RESULT, 0, 7, Buffer.from("1"))).toThrow("is over");
  });
});

it("a fault whose detail is nested too deep to be written again is unreadable", () => {
  const fault = (detail: string) =>
    Buffer.from(
      `{"stage":"predict","type":"T","message":"m","traceback":"","status_code":422,"detail":${detail}}`,
    );
  expect(readFault(fault(nested(100)))).toMatchObject({ status_code: 422, detail: [expect.anything()] });
  expect(readFault(fault(nested(60_000)))).toMatchObject({ type: "UnreadableFault" });
});

it("an ACK counts no more time than a database can add up", () => {
  const body = Buffer.alloc(16);
  body.writeUInt32LE(1, 0);
  body.writeBigUInt64LE(2n ** 64n - 1n, 8);
  const { successUs } = decodeAck(1, body);
  expect(Number.isSafeInteger(successUs * 100)).toBe(true);
});

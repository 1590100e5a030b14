/** Rules for the frames of a worker, whatever implementation sends them. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkAck } from "../../src/batch/deliveries/check-ack.ts";
import { Outstanding } from "../../src/batch/deliveries/outstanding.ts";
import {
  FAULT_DETAIL_BYTES_MAX,
  FAULT_MESSAGE_BYTES_MAX,
  FAULT_TRACEBACK_BYTES_MAX,
  FAULT_TYPE_BYTES_MAX,
  FRAME_BODY_BYTES_MAX,
  MESSAGE_BYTES_MAX,
  STREAM_PIECE_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../src/contracts/limits/frames.ts";
import { type Ack, decodeAck } from "../../src/protocol/ack.ts";
import { checkFrame, ProtocolError } from "../../src/protocol/frame-rules.ts";
import { LongBodyReceiver, LongBodySender } from "../../src/protocol/long-bodies.ts";
import { MESSAGE } from "../../src/protocol/messages.ts";
import { readFault } from "../../src/protocol/read-fault.ts";
import { readResult, readStreamHead, UnreadableHead } from "../../src/protocol/read-heads.ts";
import { root } from "../harness/server.ts";

const limits = {
  FAULT_TYPE_BYTES_MAX,
  FAULT_MESSAGE_BYTES_MAX,
  FAULT_TRACEBACK_BYTES_MAX,
  FAULT_DETAIL_BYTES_MAX,
  FRAME_BODY_BYTES_MAX,
  STREAM_PIECE_BYTES,
  STREAM_WINDOW_BYTES,
  MESSAGE_BYTES_MAX,
};
const MIB = 1024 * 1024;
const receiving = (expects: (type: number, id: number) => boolean = () => true) =>
  new LongBodyReceiver({ expects, grant: () => undefined });
const fault = { stage: "predict", type: "ValueError", message: "no good", traceback: "" };

it("the protocol has the same limits on both sides", () => {
  const code = `import json; from quern_runtime import faults, protocol; print(json.dumps([getattr(faults, n, None) or getattr(protocol, n) for n in ${JSON.stringify(Object.keys(limits))}]))`;
  const python = execFileSync("python3", ["-c", code], { cwd: join(root, "python"), encoding: "utf8" });
  expect(JSON.parse(python)).toEqual(Object.values(limits));
});

describe("a frame of a worker", () => {
  it.each([
    ["an unknown type", MESSAGE.END + 1, 0, 1, 0],
    ["a message of callers", MESSAGE.PREDICT, 0, 1, 0],
    ["a second WELCOME", MESSAGE.WELCOME, 0, 0, 2],
    ["an ACK in parts", MESSAGE.ACK, 1, 1, 16],
    ["an ACK without its head", MESSAGE.ACK, 0, 1, 15],
    ["unknown flags", MESSAGE.RESULT, 2, 1, 8],
    ["an answer to no request", MESSAGE.RESULT, 0, 0, 8],
    ["a grant of no bytes", MESSAGE.WINDOW, 0, 1, 0],
  ])("cannot be %s", (_, type, flags, id, bytes) => {
    expect(() => checkFrame(type, flags, id, bytes)).toThrow(ProtocolError);
  });

  it("may be any message that a worker sends", () => {
    for (const [type, flags, id, bytes] of [
      [MESSAGE.READY, 0, 0, 2],
      [MESSAGE.RESULT, 1, 7, FRAME_BODY_BYTES_MAX],
      [MESSAGE.CHUNK, 0, 7, 0],
      [MESSAGE.WINDOW, 0, 0, 4],
      [MESSAGE.ACK, 0, 9, 16],
    ] as const)
      checkFrame(type, flags, id, bytes);
  });

  it("cannot come inside another body, except BUSY, which ends that body", () => {
    const receiver = receiving();
    const part = Buffer.alloc(10);
    receiver.take(MESSAGE.CHUNK, 1, 1, part);
    expect(() => receiver.take(MESSAGE.END, 0, 1, Buffer.alloc(0))).toThrow(ProtocolError);
    expect(receiver.take(MESSAGE.CHUNK, 0, 2, part)).toBe(part);
    expect(receiver.take(MESSAGE.BUSY, 0, 1, Buffer.alloc(0))).toHaveLength(0);
    expect(receiver.take(MESSAGE.CHUNK, 0, 1, part)).toBe(part);
  });
});

it("a LEASE is sent at once, and any other body only up to the window", () => {
  for (const [type, sent] of [
    [MESSAGE.LEASE, 3 * MIB],
    [MESSAGE.PREDICT, STREAM_WINDOW_BYTES],
  ] as const) {
    let bytes = 0;
    const sender = new LongBodySender((_type, _flags, _id, body) => {
      bytes += body.length;
    });
    sender.send(type, 1, [Buffer.alloc(3 * MIB)]);
    expect(bytes).toBe(sent);
    expect(sender.isSending(1)).toBe(type === MESSAGE.PREDICT);
  }
});

it("a body of several frames is refused unless a request waits for it", () => {
  const receiver = receiving((type, id) => type === MESSAGE.RESULT && id === 7);
  const part = Buffer.alloc(10);
  expect(receiver.take(MESSAGE.RESULT, 1, 7, part)).toBeUndefined();
  // Its frames, not joined: for the longest body that takes 0.4 s.
  expect(receiver.take(MESSAGE.RESULT, 0, 7, part)).toEqual([part, part]);
  expect(() => receiver.take(MESSAGE.RESULT, 1, 8, part)).toThrow(ProtocolError);
  expect(() => receiver.take(MESSAGE.CHUNK, 1, 7, part)).toThrow(ProtocolError);
  // A reply of one frame costs nothing, so it is dropped.
  expect(receiver.take(MESSAGE.RESULT, 0, 8, part)).toBe(part);
});

describe("an ACK", () => {
  /** Deliveries 1 to 9 at the worker, of which 4 to 6 were given back. */
  const atWorker = () => {
    const outstanding = new Outstanding();
    for (let batch = 0; batch < 9; batch++) outstanding.push(batch, 10);
    expect(outstanding.takeRange(4, 6)).toEqual([3, 4, 5]);
    return outstanding;
  };
  const ack = (upTo: number, succeeded: number, ...failed: number[]): Ack => ({
    upTo,
    succeeded,
    rows: [],
    successUs: 1,
    failures: failed.map((delivery) => ({ delivery, fault })),
  });

  it.each([ack(2, 2), ack(3, 2, 1), ack(7, 2, 2, 7), ack(9, 0, 1, 2, 3, 7, 8, 9)])(
    "is accepted if it settles the oldest deliveries, each once: up to $upTo",
    (given) => {
      checkAck(given, atWorker());
    },
  );

  it.each([
    ["more successes than deliveries", ack(2, 3)],
    ["fewer deliveries than it settles, like one that overtook another", ack(3, 1)],
    ["nothing", ack(0, 0)],
    ["unknown deliveries", ack(20, 20)],
    ["a released delivery as its last", ack(5, 4)],
    ["a failure after its last delivery", ack(2, 1, 3)],
    ["a failure of a released delivery", ack(7, 3, 4)],
    ["the same failure twice", ack(2, 0, 1, 1)],
    ["failures out of order", ack(2, 0, 2, 1)],
  ])("that counts %s breaks the protocol", (_, given) => {
    expect(() => checkAck(given, atWorker())).toThrow(ProtocolError);
  });

  it("throws if its bytes are invalid; an invalid fault in it is reported", () => {
    const head = Buffer.alloc(16);
    head.writeUInt32LE(1, 4);
    const entry = Buffer.alloc(8);
    entry.writeUInt32LE(3, 4);
    expect(() => decodeAck(1, head)).toThrow(RangeError);
    expect(() => decodeAck(1, Buffer.concat([head, entry, Buffer.from("{}")]))).toThrow("inside of a fault");
    expect(() => decodeAck(1, Buffer.concat([head, entry, Buffer.from("NaN!")]))).toThrow("only up to 27");
    const { failures } = decodeAck(1, Buffer.concat([head, entry, Buffer.from("NaN")]));
    expect(failures).toMatchObject([{ delivery: 0, fault: { type: "UnreadableFault" } }]);
  });
});

it("only deliveries that the worker has can be released", () => {
  for (const [first, last] of [
    [1, 10],
    [0, 3],
    [10, 12],
    [3, 2],
  ] as const) {
    const outstanding = new Outstanding();
    for (let batch = 0; batch < 9; batch++) outstanding.push(batch, 10);
    expect(outstanding.takeRange(first, last)).toBeUndefined();
    expect(outstanding.count).toBe(9);
  }
});

describe("the head of an answer", () => {
  const result = (head: string) => {
    const lengths = Buffer.alloc(8);
    lengths.writeUInt32LE(Buffer.byteLength(head), 4);
    return readResult(Buffer.concat([lengths, Buffer.from(head), Buffer.from("body")]));
  };

  it("is read as it is written", () => {
    expect(result("")).toMatchObject({ head: undefined, body: Buffer.from("body") });
    const head = { status: 201, headers: [["x-a", "é"]], class_counts: [["a", 2]] };
    expect(result(JSON.stringify(head))).toMatchObject({ head, body: Buffer.from("body") });
    expect(readStreamHead(Buffer.from('{"format":"raw"}'))).toEqual({ format: "raw" });
  });

  it.each([
    "NaN",
    "[]",
    '{"status":"200"}',
    '{"status":101}',
    '{"status":200.5}',
    '{"headers":{"a":"b"}}',
    '{"headers":[["a",1]]}',
    '{"classes":[1]}',
    '{"values":["1"]}',
    '{"class_counts":[["a"]]}',
    '{"value_sum":{"count":1}}',
  ])("is unreadable as %s, and nothing throws", (head) => {
    expect(result(head)).toBeInstanceOf(UnreadableHead);
    expect(readStreamHead(Buffer.from(head))).toBeInstanceOf(UnreadableHead);
  });

  it("is unreadable if the message ends before it, or if a stream has no format", () => {
    for (const bytes of [0, 7]) expect(readResult(Buffer.alloc(bytes))).toBeInstanceOf(UnreadableHead);
    expect(readResult(Buffer.alloc(9, 0xff))).toBeInstanceOf(UnreadableHead);
    expect(readStreamHead(Buffer.from("{}"))).toBeInstanceOf(UnreadableHead);
  });
});

it("a fault is read without an invalid status", () => {
  const read = (value: unknown) => readFault(Buffer.from(JSON.stringify(value)));
  expect(read(fault)).toEqual(fault);
  expect(read({ ...fault, status_code: 422, detail: [1] })).toEqual({
    ...fault,
    status_code: 422,
    detail: [1],
  });
  expect(read({ ...fault, status_code: 1e9, detail: [1] })).toEqual(fault);
  for (const value of [null, [], "x", { ...fault, message: 1 }, {}])
    expect(read(value).type).toBe("UnreadableFault");
});

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decodeAck } from "../../src/protocol/ack.ts";
import { FrameReader, FrameWriter } from "../../src/protocol/frames.ts";
import { encodeLeasePart } from "../../src/protocol/lease-part.ts";
import {
  decodeRecycle,
  decodeRelease,
  decodeResult,
  encodeByteCount,
  MESSAGE,
} from "../../src/protocol/messages.ts";

interface Fixture {
  message: keyof typeof MESSAGE;
  type: number;
  id: number;
  flags: number;
  form: "json" | "text" | "binary" | "empty" | "part";
  bytes: string;
  value: Record<string, unknown>;
}
const fixtures = JSON.parse(
  readFileSync(new URL("../../protocol/fixtures/messages.json", import.meta.url), "utf8"),
) as Fixture[];

function cut(stream: Buffer, step: number) {
  const frames: { type: number; flags: number; id: number; body: Buffer }[] = [];
  const reader = new FrameReader((type, flags, id, body) =>
    frames.push({ type, flags, id, body: Buffer.from(body) }),
  );
  for (let at = 0; at < stream.length; at += step)
    reader.filled(stream.subarray(at, at + step).copy(reader.space()));
  return frames;
}

describe("the protocol's fixtures", () => {
  it("have every message with its number", () => {
    expect(Object.fromEntries(fixtures.map(({ message, type }) => [message, type]))).toEqual(MESSAGE);
  });

  it.each([1, 7, 64, 100_000])("are split into frames if they come in pieces of %i bytes", (step) => {
    const stream = Buffer.from(fixtures.map((fixture) => fixture.bytes).join(""), "hex");
    expect(cut(stream, step).map(({ type, flags, id }) => ({ type, flags, id }))).toEqual(
      fixtures.map(({ type, flags, id }) => ({ type, flags, id })),
    );
  });

  it.each(fixtures)("$message #$id means what the fixture says", (fixture) => {
    const bytes = Buffer.from(fixture.bytes, "hex");
    const { body, id } = cut(bytes, bytes.length)[0]!;
    const writer = new FrameWriter();
    writer.frame(fixture.type, fixture.flags, fixture.id, body);
    expect(Buffer.concat(writer.take())).toEqual(bytes);
    expect(meaning(fixture, id, body)).toEqual(fixture.value);
  });

  it("are split into frames of every length, at any offset of the read buffer", () => {
    const writer = new FrameWriter();
    const lengths = [0, 1, 4095, 256 * 1024, 100_000, 256 * 1024, 3, 200_000, 256 * 1024, 256 * 1024];
    for (const [id, length] of lengths.entries()) writer.frame(1, 0, id, Buffer.alloc(length, id));
    const stream = Buffer.concat(writer.take());
    for (const step of [65_536, 100_001, 262_144]) {
      const frames = cut(stream, step);
      expect(frames.map(({ body }) => body.length)).toEqual(lengths);
      expect(frames.every(({ id, body }) => body.every((byte) => byte === id))).toBe(true);
    }
  });

  it("include no frame whose body is above the limit", () => {
    const head = Buffer.alloc(12);
    head.writeUInt32LE(256 * 1024 + 1);
    expect(() => cut(head, 12)).toThrow("over the limit");
  });
});

/** A fixture's value as this side reads or writes it. */
function meaning({ message, form, value }: Fixture, id: number, body: Buffer): unknown {
  if (form === "json") return JSON.parse(body.toString());
  if (form === "text") return body.toString();
  if (form === "empty") return body.length === 0 ? null : body;
  if (form === "part") return value;
  switch (message) {
    case "RESULT": {
      const result = decodeResult(body);
      const head = result.head?.toString() ?? "";
      return { predict_us: result.predictUs, head, body: result.body.toString() };
    }
    case "ACK": {
      const hasOutput = (value.rows as unknown[]).length > 0;
      const { upTo, succeeded, successUs, failures, rows } = decodeAck(id, body, hasOutput);
      return {
        up_to: upTo,
        succeeded,
        success_us: successUs,
        rows: rows.map(({ rows, bytes }) => [rows, bytes]),
        failures: failures.map(({ delivery, fault }) => [delivery, fault]),
      };
    }
    case "RECYCLE":
      return { left: decodeRecycle(body) };
    case "RELEASE":
      return decodeRelease(id, body);
    case "WINDOW":
    case "CREDIT":
    case "OUTPUT_CREDIT":
      expect(encodeByteCount(value.bytes as number)).toEqual(body);
      return value;
    case "LEASE_PART": {
      const items = Buffer.from(value.items as string);
      expect(encodeLeasePart(value.batch_index as number, value.first_item as number, items)).toEqual(body);
      return value;
    }
    case "LEASE":
      // Written by batch-worker.ts straight into its frame; read by the worker: the conformance suite has it whole.
      return value;
    default:
      throw new Error(`no reading for ${message}`);
  }
}

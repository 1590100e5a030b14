/** Bytes of a stream as frames: however they are cut, both sides read the same; and untrusted frames of a worker. */
import { createHash } from "node:crypto";
import { decodeAck } from "../../../src/protocol/ack.ts";
import { checkFrame, ProtocolError } from "../../../src/protocol/frame-rules.ts";
import { FrameReader } from "../../../src/protocol/frames.ts";
import { LongBodyReceiver } from "../../../src/protocol/long-bodies.ts";
import { decodeRelease, MESSAGE } from "../../../src/protocol/messages.ts";
import { readFault } from "../../../src/protocol/read-fault.ts";
import { readResult, readStreamHead } from "../../../src/protocol/read-heads.ts";
import { readReady } from "../../../src/protocol/set-up-report.ts";
import { mustEqual, mustHold, type Target } from "../target.ts";
import { FRAME_WORDS, fixtureFrames } from "../wire.ts";

type Frame = [type: number, flags: number, id: number, body: Buffer];

interface Stream {
  frames: Frame[];
  isBroken: boolean;
}

/** `steps`: how many bytes come at a time, in turn. */
function read(bytes: Buffer, steps: readonly number[]): Stream {
  const frames: Frame[] = [];
  const reader = new FrameReader((type, flags, id, body) =>
    frames.push([type, flags, id, Buffer.from(body)]),
  );
  try {
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const space = reader.space();
      mustHold(space.length > 0, "the reader has no room");
      const step = Math.min(space.length, steps[turn % steps.length]!);
      const taken = bytes.copy(space, 0, at, at + step);
      reader.filled(taken);
      at += taken;
    }
    return { frames, isBroken: false };
  } catch {
    return { frames, isBroken: true };
  }
}

/** As a connection does; every broken rule must throw a ProtocolError. */
function decodeAll(frames: readonly Frame[]): void {
  const receiver = new LongBodyReceiver({ expects: () => true, grant: () => undefined });
  try {
    for (const [type, flags, id, body] of frames) {
      checkFrame(type, flags, id, body.length);
      const whole = receiver.take(type, flags, id, body);
      if (whole !== undefined) decode(type, id, Buffer.isBuffer(whole) ? whole : Buffer.concat(whole));
    }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
  }
}

/** What is believed is written again: into routes, responses and the database. */
const write = (believed: unknown) => JSON.stringify(believed);

function decode(type: number, id: number, body: Buffer): void {
  if (type === MESSAGE.RESULT) write({ ...readResult(body), body: undefined });
  else if (type === MESSAGE.STREAM) write(readStreamHead(body));
  else if (type === MESSAGE.READY) write(readReady(body));
  else if (type === MESSAGE.ERROR || type === MESSAGE.INIT_FAILED) write(readFault(body));
  else if (type === MESSAGE.RELEASE) decodeRelease(id, body);
  else if (type === MESSAGE.ACK) {
    try {
      const { failures } = decodeAck(id, body);
      mustHold(failures.length * 8 <= body.length, "an ACK has more failures than bytes");
    } catch (error) {
      // The reader ends the connection.
      if (!(error instanceof RangeError)) throw error;
    }
  }
}

const digest = (body: Buffer) => createHash("sha1").update(body).digest("hex");
const described = ({ frames, isBroken }: Stream) => ({
  frames: frames.map(([type, flags, id, body]) => [type, flags, id, body.length, digest(body)]),
  isBroken,
});

export const frames: Target = {
  dictionary: FRAME_WORDS,
  maxBytes: 600_000,
  covers: /\/src\/protocol\//,
  seeds: () => fixtureFrames(() => true),
  run(input) {
    const steps = [...input.subarray(0, 5)].map((byte) => 1 + byte * byte);
    const bytes = input.subarray(5);
    const whole = read(bytes, [Number.POSITIVE_INFINITY]);
    const inPieces = read(bytes, steps.length === 0 ? [1] : steps);
    mustEqual(described(whole), described(inPieces), "cut otherwise, the stream has other frames");
    decodeAll(whole.frames);
    return { claim: { bytes: bytes.toString("base64"), steps, ...described(whole) } };
  },
};

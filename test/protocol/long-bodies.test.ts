/** What a gateway holds of long bodies whose frames come from a worker that it does not trust. */
import { describe, expect, it } from "vitest";
import {
  FRAME_BODY_BYTES_MAX,
  FRAMES_OF_A_BODY_MAX,
  INCOMPLETE_BODIES_BYTES,
  STREAM_WINDOW_BYTES,
} from "../../src/contracts/limits/frames.ts";
import { ProtocolError } from "../../src/protocol/frame-rules.ts";
import { LongBodyReceiver, LongBodySender } from "../../src/protocol/long-bodies.ts";
import { MESSAGE } from "../../src/protocol/messages.ts";

const MORE = 1;
const frame = Buffer.alloc(FRAME_BODY_BYTES_MAX);
const SPACE = INCOMPLETE_BODIES_BYTES + FRAME_BODY_BYTES_MAX;

/** Sends results to a receiver, as a worker does over a connection. */
class Link {
  readonly whole = new Map<number, number>();
  readonly granted = new Map<number, number>();
  private readonly queue: [type: number, flags: number, id: number, body: Buffer][] = [];
  private readonly sender = new LongBodySender((...sent) => this.queue.push(sent));
  readonly receiver = new LongBodyReceiver({
    expects: () => true,
    grant: (id, bytes) => {
      this.granted.set(id, (this.granted.get(id) ?? 0) + bytes);
      this.sender.grant(id, bytes);
    },
  });
  /** The most bytes of incomplete bodies at one time. */
  mostHeld = 0;
  private readonly incomplete = new Map<number, number>();

  send(id: number, bytes: number): void {
    this.sender.send(MESSAGE.CHUNK, id, [Buffer.alloc(bytes)]);
  }

  /** The worker obeys a CANCEL. */
  cancel(id: number): void {
    this.receiver.abandon(id);
    this.sender.abandon(id);
    this.incomplete.delete(id);
  }

  /** Delivers at most `frames` frames, of the bodies in turn. */
  run(frames = Number.POSITIVE_INFINITY): void {
    for (let taken = 0; taken < frames && this.queue.length > 0; taken++) {
      const [type, flags, id, body] = this.queue.shift()!;
      const whole = this.receiver.take(type, flags, id, body);
      this.incomplete.set(id, (this.incomplete.get(id) ?? 0) + body.length);
      const held = [...this.incomplete.values()].reduce((sum, bytes) => sum + bytes, 0);
      this.mostHeld = Math.max(this.mostHeld, held);
      if (whole === undefined) continue;
      this.whole.set(
        id,
        [whole].flat().reduce((sum, { length }) => sum + length, 0),
      );
      this.incomplete.delete(id);
    }
  }
}

/** A worker that sends frames of these ids in turn, whatever is granted. Returns the bytes that were taken. */
function flood(receiver: LongBodyReceiver, ids: readonly number[]): number {
  for (let bytes = 0; ; ) {
    for (const id of ids) {
      try {
        receiver.take(MESSAGE.CHUNK, MORE, id, frame);
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
        return bytes;
      }
      bytes += frame.length;
    }
  }
}

describe("long bodies of one connection", () => {
  it("of a worker that does not wait for its window end the connection", () => {
    const ids = [1, 2, 3, 4, 5, 6, 7, 8];
    const bytes = flood(new Link().receiver, ids);
    expect(bytes).toBeGreaterThan(INCOMPLETE_BODIES_BYTES);
    expect(bytes).toBeLessThanOrEqual(SPACE + ids.length * (STREAM_WINDOW_BYTES + frame.length));
  });

  it("may not end with more than was granted either", () => {
    const { receiver } = new Link();
    for (const id of [1, 2]) receiver.take(MESSAGE.CHUNK, MORE, id, frame);
    for (let bytes = 0; bytes < INCOMPLETE_BODIES_BYTES; bytes += frame.length)
      receiver.take(MESSAGE.CHUNK, MORE, 1, frame);
    for (let frames = 0; frames < 4; frames++) receiver.take(MESSAGE.CHUNK, MORE, 2, frame);
    expect(() => receiver.take(MESSAGE.CHUNK, 0, 2, frame)).toThrow("granted");
  });

  it("all arrive, and the oldest alone goes on while they fill the space", () => {
    const link = new Link();
    const bytes = 100 * 1024 * 1024;
    const ids = [1, 2, 3, 4, 5, 6, 7, 8];
    for (const id of ids) link.send(id, bytes);
    link.run();
    expect([...link.whole]).toEqual(ids.map((id) => [id, bytes]));
    expect(link.mostHeld).toBeLessThanOrEqual(SPACE + bytes + ids.length * STREAM_WINDOW_BYTES);
  });

  it("go on when the oldest is cancelled, even if its BUSY comes late", () => {
    const link = new Link();
    for (const id of [1, 2, 3]) link.send(id, INCOMPLETE_BODIES_BYTES);
    link.run(2 + INCOMPLETE_BODIES_BYTES / frame.length);
    expect(link.whole.size).toBe(0);
    const granted = link.granted.get(1);
    link.cancel(1);
    link.run();
    expect([...link.whole.keys()]).toEqual([2, 3]);
    expect(link.granted.get(1)).toBe(granted);
    expect(link.receiver.take(MESSAGE.BUSY, 0, 1, Buffer.alloc(0))).toHaveLength(0);
  });

  it("that were cancelled are dropped, and still held to their window", () => {
    const { receiver } = new Link();
    receiver.take(MESSAGE.CHUNK, MORE, 1, frame);
    receiver.take(MESSAGE.CHUNK, MORE, 1, frame);
    receiver.abandon(1);
    expect(flood(receiver, [1])).toBe(STREAM_WINDOW_BYTES);
    const { receiver: other } = new Link();
    for (let frames = 0; frames < 5; frames++) other.take(MESSAGE.CHUNK, MORE, 1, frame);
    other.abandon(1);
    expect(other.take(MESSAGE.CHUNK, 0, 1, frame)).toHaveLength(1);
  });

  it("cannot consist of empty frames without end", () => {
    const { receiver } = new Link();
    const none = Buffer.alloc(0);
    for (let frames = 0; frames < FRAMES_OF_A_BODY_MAX; frames++) receiver.take(MESSAGE.CHUNK, MORE, 1, none);
    expect(() => receiver.take(MESSAGE.CHUNK, MORE, 1, none)).toThrow("frames");
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { STORE_PIECES_MAX } from "../../src/contracts/limits/stores.ts";
import { type Piece, type PieceSink, PieceUpload } from "../../src/object-store/piece-upload.ts";

/** Keeps the pieces in memory; each call waits for `gate` and fails if `fails()`. */
class MemorySink implements PieceSink {
  readonly pieceBytes: number;
  readonly pieces = new Map<number, { position: number; content: Buffer }>();
  gate: Promise<void> = Promise.resolve();
  fails = () => false;
  running = 0;
  calls: string[] = [];

  constructor(pieceBytes: number) {
    this.pieceBytes = pieceBytes;
  }

  async send({ number, position, bytes }: Piece): Promise<void> {
    expect(bytes.length).toBe(this.pieceBytes);
    await this.call(`send ${number}`);
    this.pieces.set(number, { position, content: Buffer.from(bytes) });
  }

  async complete({ number, position, bytes }: Piece) {
    await this.call(`complete ${number}`);
    this.pieces.set(number, { position, content: Buffer.from(bytes) });
    return { etag: "1" };
  }

  async abort(): Promise<void> {
    await this.call("abort");
    this.pieces.clear();
  }

  private async call(name: string): Promise<void> {
    this.calls.push(name);
    this.running++;
    expect(this.running, "no two calls run at the same time").toBe(1);
    await this.gate;
    this.running--;
    if (this.fails()) throw new Error(`no ${name}`);
  }
}

const again = async <T>(work: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!/^no /.test((error as Error).message)) throw error;
    }
  }
};

describe("an upload in pieces", () => {
  it("has every byte once and in order, however it is cut and however often it fails", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 }),
        fc.integer({ min: 1, max: 17 }),
        fc.infiniteStream(fc.boolean()),
        async (chunks, pieceBytes, failures) => {
          const sink = new MemorySink(pieceBytes);
          sink.fails = () => failures.next().value as boolean;
          const upload = new PieceUpload("s3://bucket/out", sink);
          for (const chunk of chunks) {
            const buffer = Buffer.from(chunk);
            await again(() => upload.write(buffer));
            buffer.fill(255);
          }
          expect(await again(() => upload.complete())).toEqual({ etag: "1" });
          const pieces = [...sink.pieces.entries()].sort(([a], [b]) => a - b);
          expect(pieces.map(([number]) => number)).toEqual(pieces.map((_, at) => at + 1));
          let end = 0;
          for (const [, { position, content }] of pieces) {
            expect(position).toBe(end);
            end += content.length;
          }
          expect(Buffer.concat(pieces.map(([, { content }]) => content))).toEqual(Buffer.concat(chunks));
        },
      ),
    );
  });

  it("holds two pieces: it takes no more while one is sent and the next is full", async () => {
    const sink = new MemorySink(10);
    let open = () => {};
    sink.gate = new Promise((resolve) => {
      open = resolve;
    });
    const upload = new PieceUpload("s3://bucket/out", sink);
    let written = 0;
    const writing = (async () => {
      for (; written < 50; written++) await upload.write(Buffer.from([written]));
    })();
    // Whatever can happen without the store has happened after a few turns of the event loop.
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(written).toBe(20);
    expect(sink.calls).toEqual(["send 1"]);
    open();
    await writing;
    await upload.complete();
    expect(sink.calls).toEqual(["send 1", "send 2", "send 3", "send 4", "complete 5"]);
  });

  it("is removed only after the piece that was being sent has arrived or failed", async () => {
    const sink = new MemorySink(10);
    let open = () => {};
    sink.gate = new Promise((resolve) => {
      open = resolve;
    });
    const upload = new PieceUpload("s3://bucket/out", sink);
    await upload.write(Buffer.alloc(15));
    const aborted = upload.abort();
    expect(sink.calls).toEqual(["send 1"]);
    open();
    await aborted;
    expect(sink.calls).toEqual(["send 1", "abort"]);
    await expect(upload.write(Buffer.alloc(1))).rejects.toThrow("has ended");
    await expect(upload.complete()).rejects.toThrow("was aborted");
  });

  it("has at most as many pieces as S3 allows", async () => {
    const upload = new PieceUpload("s3://bucket/out", new MemorySink(1));
    await upload.write(Buffer.alloc(STORE_PIECES_MAX));
    await expect(upload.write(Buffer.alloc(1))).rejects.toThrow(`more than ${STORE_PIECES_MAX} pieces`);
  });
});

/** A replica that breaks the protocol: a gateway holds none of its data. */

import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import type { Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  FRAME_BODY_BYTES_MAX,
  STREAM_PIECE_BYTES,
  STREAM_UNTAKEN_BYTES_MAX,
} from "../../../src/contracts/limits/frames.ts";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { ReplicaClient } from "../../../src/gateway/replicas/replica-client.ts";
import { FLAG_MORE } from "../../../src/protocol/frames.ts";
import { encodeJson, MESSAGE } from "../../../src/protocol/messages.ts";
import { eventually } from "../../harness/eventually.ts";
import { fakeWorker, type SentFrame } from "../../harness/fake-worker.ts";

const PIECE = Buffer.alloc(FRAME_BODY_BYTES_MAX);

describe("a replica", () => {
  let dir: string;
  let server: Server;
  let client: ReplicaClient;
  /** What it sends when it gets a PREDICT. */
  let reply: (id: number) => SentFrame[];
  let isConnected: boolean;
  let broken: string[];
  let written: number;
  /** The longest write. */
  let longest: number;

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), "quern-replica-"));
    [isConnected, broken, written, longest] = [false, [], 0, 0];
    const socket = join(dir, "w.sock");
    server = await fakeWorker(socket, "ready", (type, id) => (type === MESSAGE.PREDICT ? reply(id) : []));
    const route = { worker_id: "w", socket, token: "t", pid: 1, process_start: "", note: join(dir, "note") };
    client = new ReplicaClient(route, 4, {
      onResult: () => {},
      onStream: (prediction, head, onTaken) => prediction.beginStream(head, onTaken),
      onStreamEnd: () => {},
      onFault: () => {},
      onUnreadable: () => {},
      onBusy: () => {},
      onConnected: () => {
        isConnected = true;
      },
      onLost: () => {},
      onBroken: (why) => broken.push(why),
    });
    await eventually("the client is connected", () => isConnected);
  });
  afterEach(() => {
    client.retire();
    server.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** A request whose client reads nothing. */
  function ask(): PredictionRequest {
    const response = {
      destroyed: false,
      writableNeedDrain: true,
      writableLength: 0,
      getHeaderNames: () => [],
      writeHead: () => {},
      on: () => {},
      write: (bytes: Buffer) => {
        written += bytes.length;
        longest = Math.max(longest, bytes.length);
      },
    } as unknown as ServerResponse;
    const arrived = {
      startedMs: 0,
      requestId: "r",
      parts: [Buffer.from("1")],
      bodyDone: () => {},
      isStillOpen: () => true,
    };
    const prediction = new PredictionRequest(response, arrived, undefined, false);
    client.send(prediction, { wants: [], pass_credentials: false });
    return prediction;
  }

  it("is replaced if it begins a long result that no request expects", async () => {
    reply = () => [[MESSAGE.RESULT, FLAG_MORE, 99, PIECE]];
    ask();
    await eventually("it broke the protocol", () => broken.length > 0);
    expect(broken).toEqual([expect.stringContaining("for which nobody waits")]);
  });

  it("may answer a request that was cancelled with a long result", async () => {
    // With the next request comes the result of the first.
    reply = (id) =>
      id === 1
        ? []
        : [
            [MESSAGE.RESULT, FLAG_MORE, 1, PIECE],
            [MESSAGE.RESULT, 0, 1, PIECE],
          ];
    const prediction = ask();
    client.abandon(prediction);
    ask();
    await eventually("the result came", () => client.load === 1);
    expect([broken, client.has(prediction)]).toEqual([[], false]);
  });

  it("is replaced if it sends pieces without credit, and the gateway holds about one window of them", async () => {
    reply = (id) => [
      [MESSAGE.STREAM, 0, id, encodeJson({ format: "raw" })],
      ...Array.from({ length: 50 }, (): SentFrame => [MESSAGE.CHUNK, 0, id, PIECE]),
    ];
    const prediction = ask();
    await eventually("it broke the protocol", () => broken.length > 0);
    expect(broken).toEqual([expect.stringContaining("without credit")]);
    expect(written + prediction.stream!.waitingBytes).toBeLessThanOrEqual(
      STREAM_UNTAKEN_BYTES_MAX + FRAME_BODY_BYTES_MAX + STREAM_PIECE_BYTES,
    );
  });

  it("may send a piece of several frames, which the gateway never joins", async () => {
    reply = (id) => [
      [MESSAGE.STREAM, 0, id, encodeJson({ format: "json" })],
      ...Array.from({ length: 3 }, (): SentFrame => [MESSAGE.CHUNK, FLAG_MORE, id, PIECE]),
      [MESSAGE.CHUNK, 0, id, PIECE],
    ];
    const prediction = ask();
    await eventually("the piece is written", () => written === 4 * FRAME_BODY_BYTES_MAX + "\n".length);
    expect(longest).toBe(FRAME_BODY_BYTES_MAX);
    expect([broken, prediction.stream!.isPastCredit]).toEqual([[], false]);
  });

  it("may send a window of pieces and one more to a client that does not read", async () => {
    const pieces = Math.ceil(STREAM_UNTAKEN_BYTES_MAX / (FRAME_BODY_BYTES_MAX + STREAM_PIECE_BYTES));
    reply = (id) => [
      [MESSAGE.STREAM, 0, id, encodeJson({ format: "raw" })],
      ...Array.from({ length: pieces }, (): SentFrame => [MESSAGE.CHUNK, 0, id, PIECE]),
    ];
    const prediction = ask();
    await eventually(
      "all pieces wait for the client",
      () => prediction.stream?.waitingBytes === pieces * (FRAME_BODY_BYTES_MAX + STREAM_PIECE_BYTES),
    );
    expect([broken, written]).toEqual([[], 0]);
  });
});

/** Frames of the worker protocol for targets: the fixtures as seeds, and a worker that sends given frames. */
import { readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { FrameReader, FrameWriter } from "../../src/protocol/frames.ts";
import { encodeJson, MESSAGE, PROTOCOL_VERSION } from "../../src/protocol/messages.ts";
import { root } from "../harness/server.ts";

/** Every message as bytes, each fixture alone and all of one direction in a row. */
export function fixtureFrames(isWanted: (type: number) => boolean): Buffer[] {
  const file = join(root, "protocol", "fixtures", "messages.json");
  const fixtures = JSON.parse(readFileSync(file, "utf8")) as { type: number; bytes: string }[];
  const frames = fixtures.filter(({ type }) => isWanted(type)).map(({ bytes }) => Buffer.from(bytes, "hex"));
  return [...frames, Buffer.concat(frames)];
}

export function frame(type: number, id: number, body: Buffer | string = "", flags = 0): Buffer {
  const writer = new FrameWriter();
  writer.frame(type, flags, id, Buffer.from(body));
  return Buffer.concat(writer.take());
}

/** Values of the fields of frames: types, flags and ids as bytes. */
export const FRAME_WORDS: readonly string[] = [
  ...Object.values(MESSAGE).flatMap((type) => [
    frame(type, 1).toString("latin1"),
    frame(type, 0, "{}").toString("latin1"),
  ]),
  "\0\0\0\0",
  "\x01\0\0\0",
  "\x02\0\0\0",
  "\xff\xff\xff\xff",
  "\x00\x00\x04\x00",
  '{"status":200}',
  '"headers":[["a","b"]]',
  '{"format":"json"}',
  '{"format":"raw"}',
  "null",
  "NaN",
  "[]",
];

const WELCOME = encodeJson({
  ...{ protocol: PROTOCOL_VERSION, pid: 1, state: "ready", api_id: "a", connection: 1 },
  ...{ wants: [], is_async: false, died_in: null },
});

/** Listens at `path`, sends WELCOME to each caller (with the text of `welcome` if given), and reports each frame. */
export async function listenAsWorker(
  path: string,
  onFrame: (socket: Socket, type: number, id: number) => void,
  welcome: () => Buffer | undefined = () => undefined,
): Promise<Server> {
  const server = createServer((socket) => {
    const reader = new FrameReader((type, _flags, id) => {
      if (type === MESSAGE.HELLO) socket.write(frame(MESSAGE.WELCOME, 0, welcome() ?? WELCOME));
      else onFrame(socket, type, id);
    });
    socket.on("data", (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; ) {
        const taken = bytes.copy(reader.space(), 0, at);
        at += taken;
        reader.filled(taken);
      }
    });
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

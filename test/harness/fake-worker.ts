/** A worker in this process, which sends the frames of a test. */
import { createServer, type Server, type Socket } from "node:net";
import type { RunningWorker, WorkerExit } from "../../src/engine/engine.ts";
import { FrameReader, FrameWriter } from "../../src/protocol/frames.ts";
import { encodeJson, MESSAGE, PROTOCOL_VERSION } from "../../src/protocol/messages.ts";

export type SentFrame = [type: number, flags: number, id: number, body: Buffer];

/** Listens at the socket `path`, and greets each caller as a worker in the state `state`. */
export function fakeWorker(
  path: string,
  state: "new" | "ready",
  reply: (type: number, id: number) => readonly SentFrame[],
): Promise<Server> {
  const welcome = { protocol: PROTOCOL_VERSION, pid: 1, state, connection: 1, wants: [] };
  const greeting: SentFrame[] = [[MESSAGE.WELCOME, 0, 0, encodeJson(welcome)]];
  const server = createServer((socket) => {
    const reader = new FrameReader((type, _flags, id) =>
      send(socket, type === MESSAGE.HELLO ? greeting : reply(type, id)),
    );
    socket.on("error", () => {}).on("data", (bytes) => read(reader, bytes));
  });
  return new Promise((resolve) => server.listen(path, () => resolve(server)));
}

/** The process of such a worker: it ends when it is killed. */
export function fakeProcess(socket: string, process_start = "0"): RunningWorker {
  let end: (exit: WorkerExit) => void = () => {};
  const exited = new Promise<WorkerExit>((resolve) => {
    end = resolve;
  });
  const kill = () => end({ signal: "SIGKILL" });
  const identity = { worker_id: "w", pid: 1, process_start, socket, token: "t", note: `${socket}.note` };
  return {
    identity: { ...identity, instance_id: "" },
    address: { path: socket },
    exited,
    kill,
    stop: async () => kill(),
    logTo: () => {},
    lastNote: () => undefined,
  };
}

function send(socket: Socket, frames: readonly SentFrame[]): void {
  const writer = new FrameWriter();
  for (const frame of frames) writer.frame(...frame);
  for (const chunk of writer.take()) socket.write(chunk);
}

function read(reader: FrameReader, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) {
    const taken = bytes.copy(reader.space(), 0, at);
    reader.filled(taken);
    at += taken;
  }
}

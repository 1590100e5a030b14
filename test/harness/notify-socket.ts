/** The socket at which a service manager receives the messages of a service, and what it has received. */
import { type ChildProcess, spawn } from "node:child_process";
import { eventually } from "./eventually.ts";

/** Node has no datagram sockets of Unix. */
const RECEIVE = `
import socket, sys
name = sys.argv[1]
at = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
at.bind("\\0" + name[1:] if name[0] == "@" else name)
print("listening", flush=True)
while True: print(at.recv(1000).decode(), flush=True)
`;

export class NotifySocket {
  private readonly child: ChildProcess;
  private text = "";

  private constructor(name: string) {
    this.child = spawn("python3", ["-c", RECEIVE, name], { stdio: ["ignore", "pipe", "inherit"] });
    this.child.stdout!.on("data", (text) => (this.text += String(text)));
  }

  /** `name` is a path, or begins with @. */
  static async open(name: string): Promise<NotifySocket> {
    const socket = new NotifySocket(name);
    await eventually("it listens", () => socket.text.startsWith("listening\n"));
    return socket;
  }

  get messages(): string[] {
    return this.text.split("\n").slice(1, -1);
  }

  close(): void {
    this.child.kill("SIGKILL");
  }
}

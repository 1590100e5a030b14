/**
 * Tells systemd, if it started the server, how the server is: sd_notify(3). Node has no datagram sockets of Unix, so a
 * small Python program sends the messages. It runs as long as the server: a sender that has ended before systemd reads
 * its message belongs to no service.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { inBackground } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";
import { tellSoon } from "../observe/words.ts";

/** The variables that name its socket, and its watchdog. They are meant for one process. */
export const NOTIFY_VARIABLES = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] as const;

type NotifyVariables = Partial<Record<(typeof NOTIFY_VARIABLES)[number], string>>;

/** Sends each line of its input. A name that begins with @ is abstract. */
const SEND = `
import socket, sys
name = sys.argv[1]
to = "\\0" + name[1:] if name.startswith("@") else name
said = ""
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
    for line in sys.stdin.buffer:
        try:
            out.sendto(line.strip(), to)
            said = ""
        except OSError as error:
            if str(error) != said: print("quern: cannot tell systemd:", error, file=sys.stderr, flush=True)
            said = str(error)
`;
const RESTART_MS = 1_000;
const CLOSE_MS = 2_000;

/** How often systemd must hear that this process lives: twice in the time after which it ends the process. Pure. */
export function watchdogMs(
  { WATCHDOG_USEC, WATCHDOG_PID }: NotifyVariables,
  pid: number,
): number | undefined {
  const microseconds = Number(WATCHDOG_USEC ?? 0);
  const isOurs = WATCHDOG_PID === undefined || WATCHDOG_PID === String(pid);
  return isOurs && microseconds > 0 ? Math.max(1, microseconds / 2_000) : undefined;
}

export class Systemd {
  private readonly socket: string | undefined;
  private readonly python: string;
  private readonly everyMs: number | undefined;
  private sender: ChildProcess | undefined;
  private state: "" | "READY=1" | "STOPPING=1" = "";
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;
  /** Why the last sender could not start: said once. */
  private failure = "";

  /** Does nothing if systemd does not want to know. `python` is any interpreter. */
  constructor(variables: NotifyVariables, python: string) {
    this.socket = variables.NOTIFY_SOCKET || undefined;
    this.python = python;
    this.everyMs = watchdogMs(variables, process.pid);
  }

  start(): void {
    if (this.socket === undefined) return;
    this.startSender(this.socket);
    if (this.everyMs === undefined) return;
    // Only a parent whose event loop turns sends it. Silent children are the parent's to replace.
    this.timer = setInterval(() => this.send("WATCHDOG=1"), this.everyMs).unref();
  }

  ready(): void {
    this.change("READY=1");
  }

  stopping(): void {
    this.change("STOPPING=1");
  }

  /** Resolves once all is sent, or if that takes too long. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.timer);
    const { sender } = this;
    if (sender?.pid === undefined) return;
    sender.ref();
    const ended = new Promise((resolve) => sender.once("exit", resolve));
    sender.stdin?.end();
    await Promise.race([ended, delay(CLOSE_MS)]);
  }

  private change(state: "READY=1" | "STOPPING=1"): void {
    // A server that stops is not ready again.
    if (state === this.state || this.state === "STOPPING=1") return;
    this.state = state;
    this.send(state);
  }

  private send(message: string): void {
    this.sender?.stdin?.write(`${message}\n`);
  }

  private startSender(socket: string): void {
    const failed = ({ message }: Error) => {
      if (message !== this.failure)
        tellSoon(
          "error",
          { event: "systemd_not_told" },
          `cannot tell systemd how the server is: ${message}; trying again`,
        );
      this.failure = message;
      inBackground(this.restartSender(socket));
    };
    try {
      const sender = spawn(this.python, ["-I", "-S", "-c", SEND, socket], {
        stdio: ["pipe", "inherit", "inherit"],
        detached: true,
      });
      this.sender = sender;
      sender.once("spawn", () => {
        this.failure = "";
      });
      sender.once("error", (error) => sender.pid === undefined && failed(error));
      sender.once("exit", () => inBackground(this.restartSender(socket)));
      sender.unref();
      sender.stdin?.on("error", () => {});
      (sender.stdin as Socket | null)?.unref();
      if (this.state !== "") this.send(this.state);
    } catch (error) {
      failed(error as Error);
    }
  }

  /** The next one says again how the server is. */
  private async restartSender(socket: string): Promise<void> {
    this.sender = undefined;
    await delay(RESTART_MS);
    if (!this.isClosed) this.startSender(socket);
  }
}

/**
 * Clients of a Service that send one prediction after the other. A request that no server has taken (a refused
 * connection, a standby) is sent again until one takes it, as a client or an Ingress does.
 */
import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

const AGAIN_MS = 50;
const SILENT_MAX_MS = 5_000;
/** A pod that is gone does not answer at all, until the Service has learned of it. */
const CONNECT_MAX_MS = 1_000;
/** No server has taken the request. */
const NOT_TAKEN = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "standby"];

export interface Sent {
  startedMs: number;
  endedMs: number;
  /** `200`, another status with its code, or the error of the connection. */
  outcome: string;
  /** How often no server had taken it before. */
  refusals: number;
}

export class RetryingLoad {
  readonly sent: Sent[] = [];
  private readonly agent = new Agent({ keepAlive: true });
  private readonly url: string;
  private readonly key: string;
  private readonly clients: Promise<void>[];
  private isStopped = false;

  constructor(url: string, key: string, clients: number) {
    this.url = url;
    this.key = key;
    this.clients = Array.from({ length: clients }, () => this.run());
  }

  /** Resolves to the requests that were taken and failed, and to the longest time in which none succeeded. */
  async stop(): Promise<{ failed: Sent[]; total: number; longestMs: number }> {
    this.isStopped = true;
    await Promise.all(this.clients);
    this.agent.destroy();
    const ends = this.sent.filter(({ outcome }) => outcome === "200").map(({ endedMs }) => endedMs);
    const gaps = ends.sort((a, b) => a - b).map((endedMs, at) => endedMs - (ends[at - 1] ?? endedMs));
    return {
      failed: this.sent.filter(({ outcome }) => outcome !== "200"),
      total: this.sent.length,
      longestMs: Math.max(0, ...gaps),
    };
  }

  private async run(): Promise<void> {
    while (!this.isStopped) {
      const startedMs = performance.now();
      let refusals = 0;
      let outcome = await this.one();
      while (NOT_TAKEN.includes(outcome) && !this.isStopped) {
        refusals++;
        await pause(AGAIN_MS);
        outcome = await this.one();
      }
      if (!NOT_TAKEN.includes(outcome))
        this.sent.push({ startedMs, endedMs: performance.now(), outcome, refusals });
      await pause(10);
    }
  }

  private one(): Promise<string> {
    return new Promise((resolve) => {
      const headers = { authorization: `Bearer ${this.key}`, "content-type": "application/json" };
      const sent = request(this.url, { method: "POST", agent: this.agent, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (piece: string) => (text += piece));
        response.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        response.on("end", () => resolve(outcomeOf(response.statusCode!, text)));
      });
      sent.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      sent.setTimeout(SILENT_MAX_MS, () => sent.destroy(new Error("silent")));
      const unreached = Object.assign(new Error("no connection"), { code: "EHOSTUNREACH" });
      const timer = setTimeout(() => sent.destroy(unreached), CONNECT_MAX_MS);
      sent.on("close", () => clearTimeout(timer));
      sent.on("socket", (socket) => {
        if (!socket.connecting) clearTimeout(timer);
        else socket.once("connect", () => clearTimeout(timer));
      });
      sent.end("1");
    });
  }
}

function outcomeOf(status: number, text: string): string {
  if (status === 200) return "200";
  const [, code] = /"code":"(\w+)"/.exec(text) ?? [];
  return code === "standby" ? code : `${status} ${code}`;
}

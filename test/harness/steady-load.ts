/** Clients that send one request after the other on connections of their own, and record the responses. */
import { Agent, request } from "node:http";
import { setTimeout } from "node:timers/promises";

export interface Answer {
  startedMs: number;
  endedMs: number;
  /** 0 where the connection broke. */
  status: number;
  body: string;
}

export class SteadyLoad {
  readonly answers: Answer[] = [];
  private isStopped = false;
  private readonly clients: Promise<void>[];
  private readonly agent: Agent;

  private readonly pauseMs: number;

  /** `pauseMs`: the pause of each client after each answer. Without `keepAlive` each request has a new connection. */
  constructor(url: string, connections: number, payload: unknown = {}, pauseMs = 0, keepAlive = true) {
    this.pauseMs = pauseMs;
    this.agent = new Agent({ keepAlive, maxSockets: connections });
    const body = JSON.stringify(payload);
    this.clients = Array.from({ length: connections }, () => this.run(url, body));
  }

  async stop(): Promise<Answer[]> {
    this.isStopped = true;
    await Promise.all(this.clients);
    this.agent.destroy();
    return this.answers;
  }

  private async run(url: string, body: string): Promise<void> {
    while (!this.isStopped) {
      this.answers.push(await this.one(url, body));
      if (this.pauseMs > 0) await setTimeout(this.pauseMs);
    }
  }

  private one(url: string, body: string): Promise<Answer> {
    const startedMs = performance.now();
    return new Promise((resolve) => {
      const end = (status: number, text: string) =>
        resolve({ startedMs, endedMs: performance.now(), status, body: text });
      const sent = request(
        url,
        { method: "POST", agent: this.agent, headers: { "content-type": "application/json" } },
        (answer) => {
          let text = "";
          answer.setEncoding("utf8");
          answer.on("data", (piece: string) => (text += piece));
          answer.on("end", () => end(answer.statusCode!, text));
          answer.on("error", (error) => end(0, error.message));
        },
      );
      sent.on("error", (error) => end(0, error.message));
      sent.end(body);
    });
  }
}

/** Clients of the real-time APIs: each request has an id of its own, by which it is found in the predictors' record. */
import { request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { TestServer } from "../harness/server.ts";
import { APIS } from "./predictors.ts";
import { recordLines } from "./processes.ts";
import type { Violations } from "./violations.ts";

const CLIENTS = 6;
/** A body of more than one window: it comes in pieces, and a shorter one may overtake it. */
const LONG_BYTES = [1_100_000, 3_000_000] as const;
/** A killed server is back long before. */
const SILENCE_MS = 45_000;

interface Answer {
  status: number;
  text: string;
}

export interface LoadOptions {
  server: TestServer;
  random: () => number;
  violations: Violations;
  record: string;
}

export class Load {
  readonly statuses = new Map<number, number>();
  private readonly options: LoadOptions;
  private readonly answered = new Set<string>();
  private lastGoodMs = performance.now();
  private next = 0;
  private isOver = false;
  private clients: Promise<void>[] = [];

  constructor(options: LoadOptions) {
    this.options = options;
  }

  start(): void {
    this.lastGoodMs = performance.now();
    this.clients = Array.from({ length: CLIENTS }, (_, client) => this.run(client));
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.clients);
  }

  /** Checks the record: no request began twice, and every answered one had begun. */
  check(): void {
    const { violations, record } = this.options;
    const begun = new Map<string, string[]>();
    for (const [id, pid] of recordLines(record)) begun.set(id!, [...(begun.get(id!) ?? []), pid!]);
    for (const [id, pids] of begun)
      if (pids.length > 1)
        violations.add(`request ${id} was begun ${pids.length} times, by ${pids.join(", ")}`);
    for (const id of this.answered)
      if (!begun.has(id)) violations.add(`request ${id} was answered and never run`);
  }

  private async run(client: number): Promise<void> {
    const { random, violations } = this.options;
    while (!this.isOver) {
      const api = APIS[client % APIS.length]!;
      const isLong = random() < 0.2;
      const length = isLong ? LONG_BYTES[0] + Math.floor(random() * (LONG_BYTES[1] - LONG_BYTES[0])) : 10;
      const id = `${api}-${isLong ? "long" : "short"}-${this.next++}`;
      const seconds = random() < 0.3 ? random() * 0.2 : 0.002;
      const { status, text } = await this.ask(api, JSON.stringify({ id, seconds, pad: "x".repeat(length) }));
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      if (status === 200) {
        this.lastGoodMs = performance.now();
        this.answered.add(id);
        if (text !== JSON.stringify({ id, length })) this.wrong(id, status, text);
      } else if (![0, 502, 503].includes(status)) this.wrong(id, status, text);
      if (performance.now() - this.lastGoodMs > SILENCE_MS) {
        violations.add(`no prediction was answered for ${SILENCE_MS} ms; the last one: ${status} ${text}`);
        this.lastGoodMs = performance.now();
      }
      await pause(5 + random() * 20);
    }
  }

  private wrong(id: string, status: number, text: string): void {
    this.options.violations.add(`request ${id} was answered ${status} ${text.slice(0, 500)}`);
  }

  /** 0 where the connection broke, or was refused. */
  private ask(api: string, body: string): Promise<Answer> {
    return new Promise((resolve) => {
      const broken = (error: Error) => resolve({ status: 0, text: error.message });
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
      const url = `${this.options.server.baseUrl}/${api}`;
      const sent = request(url, { method: "POST", agent: false, headers, timeout: 90_000 }, (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (piece: string) => (text += piece));
        answer.on("end", () => resolve({ status: answer.statusCode!, text }));
        answer.on("error", broken);
      });
      sent.on("timeout", () => {
        resolve({ status: -1, text: "no answer within 90 s" });
        sent.destroy();
      });
      sent.on("error", broken).end(body);
    });
  }
}

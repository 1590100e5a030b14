/**
 * A proxy before a cluster's API server that does what networks and busy API servers do: cuts responses off at any
 * byte, delays them, goes silent, answers 410, 429 or 500, and puts errors into watches. Its choices are random, with a
 * seed.
 */
import { createServer, type IncomingMessage, request as plainRequest, type ServerResponse } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import type { ClusterAccess } from "../../src/kubernetes/cluster-access.ts";

type Fault = "none" | "cut" | "silent" | "slow" | "refuse" | 410 | 429 | 500 | "expired event";
/** Of a watch. A request for a list fails half of the time, in one of these ways. */
const FAULTS: readonly Fault[] = [
  "cut",
  "cut",
  "cut",
  "silent",
  "slow",
  "refuse",
  410,
  429,
  500,
  "expired event",
];
const CUT_BYTES_MAX = 20_000;
const SLOW_MS = 100;

export class FaultyApiServer {
  /** Requests since it was opened, by the fault that they met. */
  readonly seen = new Map<Fault, number>();
  private isFaulty = true;
  private next: Fault | undefined;
  private readonly real: ClusterAccess;
  private readonly random: () => number;
  private readonly server = createServer((asked, answer) => {
    this.pass(asked, answer).catch(() => asked.destroy());
  });

  /** `random`: from 0 to 1. */
  constructor(real: ClusterAccess, random: () => number) {
    this.real = real;
    this.random = random;
  }

  get requests(): number {
    return [...this.seen.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Resolves to the access through the proxy. */
  async open(): Promise<ClusterAccess> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    const { port } = this.server.address() as AddressInfo;
    return { ...this.real, server: `http://127.0.0.1:${port}`, ca: undefined };
  }

  /** Faults end. Whatever is silent now stays so, unless it is cut. */
  calm(): void {
    this.isFaulty = false;
  }

  /** The next watch ends at once, because its version is too old. */
  expireNext(): void {
    this.next = "expired event";
  }

  cutAll(): void {
    this.server.closeAllConnections();
  }

  close(): void {
    this.cutAll();
    this.server.close();
  }

  private async pass(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const fault = this.next ?? this.choose(asked.url!.includes("watch=1"));
    this.next = undefined;
    this.seen.set(fault, (this.seen.get(fault) ?? 0) + 1);
    if (fault === "refuse") return void asked.destroy();
    if (typeof fault === "number") return refuse(answer, fault);
    if (fault === "slow") await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
    const response = await this.forward(asked);
    answer.on("close", () => response.destroy());
    answer.writeHead(response.statusCode!, { "content-type": "application/json" });
    answer.flushHeaders();
    if (fault === "expired event")
      return void answer.end(`${JSON.stringify({ type: "ERROR", object: status(410) })}\n`);
    const isCut = fault === "cut" || fault === "silent" || fault === "slow";
    let left = isCut ? Math.floor(this.random() * CUT_BYTES_MAX) : Number.POSITIVE_INFINITY;
    for await (const chunk of response) {
      const bytes = (chunk as Buffer).subarray(0, left);
      left -= bytes.length;
      answer.write(bytes);
      if (left > 0) continue;
      if (fault !== "silent") answer.destroy();
      // Silence: neither another byte nor the end.
      return;
    }
    answer.end();
  }

  private choose(isWatch: boolean): Fault {
    const isFine = !this.isFaulty || (!isWatch && this.random() < 0.5);
    return isFine ? "none" : FAULTS[Math.floor(this.random() * FAULTS.length)]!;
  }

  private async forward(asked: IncomingMessage): Promise<IncomingMessage> {
    const { server, ca, credentials } = this.real;
    const url = new URL(asked.url!, server);
    const { token } = await credentials(false);
    const headers = { authorization: `Bearer ${token}`, accept: "application/json" };
    const send = url.protocol === "http:" ? plainRequest : request;
    return new Promise((resolve, reject) => {
      send(url, { method: asked.method!, headers, ...(ca === undefined ? {} : { ca }) }, resolve)
        .on("error", reject)
        .end();
    });
  }
}

function refuse(answer: ServerResponse, code: number): void {
  const wait = code === 429 ? { "retry-after": "1" } : {};
  answer.writeHead(code, { "content-type": "application/json", ...wait }).end(JSON.stringify(status(code)));
}

function status(code: number): object {
  return {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code,
    reason: code === 410 ? "Expired" : "Fault",
  };
}

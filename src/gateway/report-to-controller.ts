/**
 * The messages of a gateway to the controller: counts of requests, keys that were used, and requests to
 * kill, replace or start a replica.
 */
import { request as httpRequest } from "node:http";
import { delay, wallMs } from "../base/clock.ts";
import { isSameProcess, signalGroup } from "../base/process-identity.ts";
import type { ReplicaRoute } from "../contracts/routes.ts";
import type { LoopDelayMeter } from "../observe/loop-delay.ts";
import type { RouteTable } from "./replicas/route-table.ts";

/** An unchanged report is sent this often: the controller considers a gateway gone after 180 s of silence. */
const REPORT_ANYWAY_MS = 60_000;
/** How long the last report may take. If the controller is gone too, the counts of the last second are lost. */
const LAST_REPORT_MS = 1_000;

const MINUTE_MS = 60_000;
/** Used keys in one message: 40 KB. */
const USED_KEYS_AT_ONCE = 1_000;

/** Asks the controller to kill, replace or start replicas, because the controller accounts for them. */
export class ControllerMessages {
  private readonly internalSocket: string;

  constructor(internalSocket: string) {
    this.internalSocket = internalSocket;
  }

  kill(replica: ReplicaRoute): void {
    this.tell(`/workers/${replica.worker_id}/kill`, () => killHere(replica));
  }

  replace(replica: ReplicaRoute): void {
    this.tell(`/workers/${replica.worker_id}/replace`, () => killHere(replica));
  }

  wake(api: string): void {
    this.tell(`/apis/${api}/wake`, () => {});
  }

  /** `otherwise` runs if there is no controller, and does what is possible without it. */
  tell(path: string, otherwise: () => void, body = "", onDone = () => {}): void {
    const ask = httpRequest({ socketPath: this.internalSocket, method: "POST", path });
    ask.on("error", otherwise);
    ask.on("response", (answer) => answer.resume());
    ask.on("close", onDone);
    ask.end(body);
  }
}

export class CountsReport {
  private readonly messages: ControllerMessages;
  private readonly routes: RouteTable;
  private readonly loop: LoopDelayMeter;
  /** The last report, the connection to the controller that it belongs to, and its time. */
  private told = { text: "", connections: 0, atMs: 0 };

  constructor(messages: ControllerMessages, routes: RouteTable, loop: LoopDelayMeter) {
    this.messages = messages;
    this.routes = routes;
    this.loop = loop;
  }

  /** While requests are under way, every report is sent: the controller forgets their number after a few seconds. */
  sendIfChanged(): void {
    const text = this.text();
    const isKnown = text === this.told.text && this.routes.connections === this.told.connections;
    const isRecent = performance.now() - this.told.atMs < REPORT_ANYWAY_MS;
    if (this.routes.underWay > 0 || !isKnown || !isRecent) this.send(text);
  }

  async sendLast(): Promise<void> {
    const sent = new Promise<void>((resolve) => this.send(this.text(), resolve));
    await Promise.race([sent, delay(LAST_REPORT_MS)]);
  }

  private text(): string {
    return JSON.stringify({ ...this.routes.report(), loop: this.loop.read() });
  }

  /** The report is lost if there is no controller; the next controller gets it again. */
  private send(text: string, onDone?: () => void): void {
    this.told = { text, connections: this.routes.connections, atMs: performance.now() };
    const onLost = () => {
      this.told.text = "";
    };
    this.messages.tell("/reports", onLost, text, onDone);
  }
}

/** Tells the controller when keys are used: each key once a minute at most. */
export class UsedKeys {
  private readonly messages: ControllerMessages;
  private minuteMs = minuteOf(wallMs());
  /** The keys that were used in this minute, or in the first second of the next. */
  private noted = new Set<string>();
  /** The minute of each key that the controller has not been told yet. */
  private readonly untold = new Map<string, number>();

  constructor(messages: ControllerMessages) {
    this.messages = messages;
  }

  /** Called with every request that presents a key, so it reads the clock only once a minute for each key. */
  note(id: string): void {
    if (this.noted.has(id)) return;
    this.noted.add(id);
    this.untold.set(id, minuteOf(wallMs()));
  }

  /** Called once a second. */
  send(): void {
    const minuteMs = minuteOf(wallMs());
    if (minuteMs !== this.minuteMs) this.noted = new Set();
    this.minuteMs = minuteMs;
    const keys = [...this.untold].slice(0, USED_KEYS_AT_ONCE);
    if (keys.length === 0) return;
    for (const [id] of keys) this.untold.delete(id);
    const onLost = () => {
      for (const [id, minute] of keys) if (!this.untold.has(id)) this.untold.set(id, minute);
    };
    this.messages.tell("/keys/used", onLost, JSON.stringify({ keys }));
  }
}

function minuteOf(ms: number): number {
  return ms - (ms % MINUTE_MS);
}

function killHere(replica: ReplicaRoute): void {
  if (isSameProcess(replica.pid, replica.process_start)) signalGroup(replica.pid, "SIGKILL");
}

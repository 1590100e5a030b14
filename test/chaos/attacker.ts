/** Kills and stops processes at random moments, and remembers what it did. It alone ends the parent, and starts it again. */
import { setTimeout as pause } from "node:timers/promises";
import type { TestServer } from "../harness/server.ts";
import type { Deaths } from "./job.ts";
import { processesOf, type Role } from "./processes.ts";
import type { Violations } from "./violations.ts";

const PAUSE_MS = [300, 2_500] as const;
const STOP_MS = [100, 3_000] as const;
/** After this the parent considers a gateway or controller hung. */
const LONG_STOP_MS = [11_000, 14_000] as const;

type Victim = Role | "parent";
const VICTIMS: readonly Victim[] = [
  "controller",
  "gateway",
  "gateway",
  "parent",
  "job worker",
  "replica",
  "replica",
];

interface Attack {
  atMs: number;
  victim: Victim;
  how: "kill" | "stop" | "long stop";
  pid: number;
}

export interface AttackerOptions {
  server: TestServer;
  random: () => number;
  violations: Violations;
  /** The arguments of `quern up`. */
  args: string[];
  longStops: boolean;
  /** Workers that have begun a batch: one that dies in its set-up ends its job, as it should. */
  mayDie: (pid: number) => boolean;
}

export class Attacker {
  readonly attacks: Attack[] = [];
  private readonly options: AttackerOptions;
  private isOver = false;
  private isParentExpected = false;
  private running: Promise<void> = Promise.resolve();

  constructor(options: AttackerOptions) {
    this.options = options;
  }

  start(): void {
    this.watchParent();
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.running;
    // From here on it may be stopped.
    this.isParentExpected = true;
  }

  /** Deaths that a job has seen which was submitted then and had these workers. */
  deaths(sinceMs: number, pids: ReadonlySet<number>): Deaths {
    const since = this.attacks.filter(({ atMs }) => atMs > sinceMs);
    const kills = since.filter(({ how }) => how === "kill");
    const endsController = ({ victim, how }: Attack) =>
      (how === "kill" && victim === "parent") || (how !== "stop" && victim === "controller");
    return {
      controllers: since.filter(endsController).length,
      workers: kills.filter(({ victim, pid }) => victim === "job worker" && pids.has(pid)).length,
    };
  }

  /** How often each was attacked. */
  summary(): string {
    const counts = new Map<string, number>();
    for (const { victim, how } of this.attacks)
      counts.set(`${how} ${victim}`, (counts.get(`${how} ${victim}`) ?? 0) + 1);
    return [...counts]
      .sort()
      .map(([what, count]) => `${what} ${count}`)
      .join(", ");
  }

  private between([from, to]: readonly [number, number]): number {
    return from + this.options.random() * (to - from);
  }

  private async run(): Promise<void> {
    const { random, longStops, violations } = this.options;
    while (!this.isOver) {
      await pause(this.between(PAUSE_MS));
      const victim = VICTIMS[Math.floor(random() * VICTIMS.length)]!;
      const dice = random();
      const how = dice < 0.6 ? "kill" : longStops && dice > 0.95 ? "long stop" : "stop";
      try {
        if (!this.isOver) await this.attack(victim, how);
      } catch (error) {
        violations.add(`after ${how} of ${victim}: ${(error as Error).message}`);
        return;
      }
    }
  }

  private async attack(victim: Victim, how: Attack["how"]): Promise<void> {
    const pid = this.choose(victim);
    if (pid === undefined) return;
    this.attacks.push({ atMs: performance.now(), victim, how, pid });
    if (how !== "kill") return this.stopFor(pid, this.between(how === "stop" ? STOP_MS : LONG_STOP_MS));
    if (victim !== "parent") return void signal(pid, "SIGKILL");
    const { server, args } = this.options;
    const exited = new Promise((resolve) => server.parent!.once("exit", resolve));
    this.isParentExpected = true;
    signal(pid, "SIGKILL");
    await exited;
    this.isParentExpected = false;
    await server.start({}, args);
    this.watchParent();
  }

  private choose(victim: Victim): number | undefined {
    const { server, mayDie, random } = this.options;
    if (victim === "parent") return server.parent!.pid;
    const found = processesOf(server, victim).filter((pid) => victim !== "job worker" || mayDie(pid));
    return found[Math.floor(random() * found.length)];
  }

  private async stopFor(pid: number, ms: number): Promise<void> {
    signal(pid, "SIGSTOP");
    try {
      await pause(ms);
    } finally {
      signal(pid, "SIGCONT");
    }
  }

  private watchParent(): void {
    const { server, violations } = this.options;
    server.parent!.once("exit", (code, signalName) => {
      if (!this.isParentExpected)
        violations.add(`the server ended itself (${code ?? signalName}): ${server.stderr.slice(-2_000)}`);
    });
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has gone meanwhile.
  }
}

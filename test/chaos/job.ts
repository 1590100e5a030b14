/** One job under attack: submitted once, however often that is tried, and held to its promises when it has ended. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { CREDIT_BATCHES_MAX } from "../../src/contracts/limits/jobs.ts";
import type { TestServer } from "../harness/server.ts";
import type { JobView } from "../harness/views.ts";
import { itemsOf, type JobPlan } from "./job-plan.ts";
import { outputFaults } from "./output.ts";
import type { OutputPlaces } from "./output-places.ts";
import { recordLines } from "./processes.ts";
import type { Violations } from "./violations.ts";
import { wholeAnswer } from "./whole-answer.ts";

/** Longer than `predict()` of a slow job may take for its credit to be 1. */
const SLOW_S = 0.06;
const AGAIN_MS = 200;

export interface Deaths {
  controllers: number;
  workers: number;
}

interface Failure {
  batch_index: number;
  receive_count: number;
  error: { type: string };
}

export interface ChaosDeps {
  server: TestServer;
  violations: Violations;
  places: OutputPlaces;
}

export class ChaosJob {
  readonly directory: string;
  readonly plan: JobPlan;
  id = "";
  private readonly server: TestServer;
  private readonly violations: Violations;
  private readonly number: number;
  private readonly places: OutputPlaces;

  constructor({ server, violations, places }: ChaosDeps, number: number, plan: JobPlan) {
    this.server = server;
    this.places = places;
    this.violations = violations;
    this.number = number;
    this.plan = plan;
    this.directory = join(server.dir, `job-${number}`);
    mkdirSync(this.directory);
  }

  get queue(): string {
    return `chaos-${this.number}`;
  }

  get pids(): Set<number> {
    return new Set(this.record().map(([, , pid]) => Number(pid)));
  }

  /** With a key, so that a submission whose answer was lost makes no second job. */
  async submit(): Promise<void> {
    const body = JSON.stringify(this.submission());
    const headers = { "idempotency-key": `chaos-${this.number}` };
    for (;;) {
      const answer = await wholeAnswer(`${this.server.baseUrl}/jobs`, headers, body);
      if (answer?.status === 200) {
        this.id = (JSON.parse(answer.text) as { job_id: string }).job_id;
        return;
      }
      if (answer !== undefined && ![502, 503].includes(answer.status))
        this.violations.add(`submission ${this.number} was answered ${answer.status} ${answer.text}`);
      await pause(AGAIN_MS);
    }
  }

  async isEnded(): Promise<boolean> {
    const job = await this.read<{ job_status: JobView }>(`/jobs/${this.id}`);
    return job.job_status.end_time !== undefined;
  }

  /** The answer may be lost, and the job may have ended. */
  async change(verb: "pause" | "unpause"): Promise<void> {
    const answer = await wholeAnswer(`${this.server.baseUrl}/jobs/${this.id}/${verb}`, {}, "");
    if (answer !== undefined && ![200, 409, 502, 503].includes(answer.status))
      this.wrong(`${verb} was answered ${answer.status} ${answer.text}`);
  }

  /** `deaths`: since it was submitted. Returns how many batches ran again without being counted. */
  async check(deaths: Deaths): Promise<number> {
    const { job_status: job } = await this.read<{ job_status: JobView }>(`/jobs/${this.id}`);
    const failures = await this.failures();
    this.checkCounts(job, failures, deaths);
    this.checkFailures(failures, deaths);
    await this.checkLetters(failures);
    this.checkOutput(failures);
    return this.checkRecord(job, failures, deaths);
  }

  describe(): string {
    const {
      isInline,
      isSlow,
      batchSize,
      workers,
      maxAttempts,
      hasQueue,
      fails,
      place,
      isCompressed,
      rowBytes,
    } = this.plan;
    const bad = fails.filter(Boolean).length;
    return `job ${this.number} ${this.id} (${fails.length} batches of ${batchSize}, ${bad} bad, ${isInline ? "inline" : "file"}${isSlow ? ", slow" : ""}, ${workers} workers, ${maxAttempts} attempts${hasQueue ? ", queue" : ""}, output: ${place}${isCompressed ? ", compressed" : ""}, rows of ${rowBytes})`;
  }

  private wrong(what: string): void {
    this.violations.add(`${this.describe()}: ${what}`);
  }

  private record(): string[][] {
    return recordLines(join(this.directory, "record"));
  }

  private submission(): Record<string, unknown> {
    const { plan, directory } = this;
    const { batchSize, workers, maxAttempts, isSlow } = plan;
    const items = plan.fails.flatMap((_, batch) => itemsOf(plan, batch));
    const config = { directory, size: batchSize, slow_s: isSlow ? SLOW_S : 0, row_bytes: plan.rowBytes };
    const queue = { queue_dead_letter_queue: { arn: this.queue, max_receive_count: maxAttempts } };
    const output = this.places.output(plan.place, plan.isCompressed);
    const base = { workers, config, output, ...(plan.hasQueue ? queue : {}) };
    if (plan.isInline) return { ...base, item_list: { items, batch_size: batchSize } };
    const file = join(this.server.inputs, `job-${this.number}.jsonl`);
    writeFileSync(file, items.map((item) => `${JSON.stringify(item)}\n`).join(""));
    return { ...base, delimited_files: { store_paths: [`file://${file}`], batch_size: batchSize } };
  }

  private checkCounts(job: JobView, failures: Failure[], deaths: Deaths): void {
    const { succeeded, failed } = job.batch_metrics;
    const total = this.plan.fails.length;
    if (job.total_batch_count !== total) this.wrong(`has ${job.total_batch_count} batches`);
    if (job.batches_in_queue !== 0 || succeeded + failures.length !== total)
      this.wrong(`${succeeded} succeeded, ${failures.length} failed, ${job.batches_in_queue} in the queue`);
    // Each final failure has all attempts; those that succeeded later have what was charged before.
    const least = failures.length * this.plan.maxAttempts;
    const firsts = this.plan.fails.filter((fail) => fail === "first").length;
    const most = least + firsts + deaths.workers + deaths.controllers;
    if (failed < least || failed > most)
      this.wrong(`${failed} failed attempts, expected ${least} to ${most}`);
    const died = failures.some(({ error }) => error.type !== "ValueError");
    const failedStatus = died ? "status_worker_error" : "status_completed_with_failures";
    const expected = failures.length === 0 ? "status_succeeded" : failedStatus;
    if (job.status !== expected)
      this.wrong(`ended ${job.status} ${JSON.stringify(job.reason)}, not ${expected}`);
  }

  private checkFailures(failures: Failure[], deaths: Deaths): void {
    const { fails, maxAttempts } = this.plan;
    const failed = new Set(failures.map(({ batch_index }) => batch_index));
    for (const [batch, fail] of fails.entries())
      if (fail === "always" && !failed.has(batch)) this.wrong(`batch ${batch} always fails, and succeeded`);
    const mayFail = (batch: number) =>
      fails[batch] === "always" || (fails[batch] === "first" && maxAttempts === 1);
    const byDeath = failures.filter(({ error }) => error.type !== "ValueError");
    if (byDeath.length > deaths.workers + deaths.controllers / 4)
      this.wrong(`${byDeath.length} batches were lost to deaths of ${deaths.workers} workers`);
    for (const { batch_index, receive_count, error } of failures) {
      if (error.type === "ValueError" && fails[batch_index] === undefined)
        this.wrong(`batch ${batch_index} failed with ${error.type}, and is good`);
      if (error.type === "ValueError" && !mayFail(batch_index) && deaths.workers + deaths.controllers === 0)
        this.wrong(`batch ${batch_index} finally failed, and had attempts left`);
      if (receive_count !== maxAttempts) this.wrong(`batch ${batch_index} had ${receive_count} attempts`);
    }
  }

  /** Each final failure has its message in the dead letter queue, once, with its items. */
  private async checkLetters(failures: Failure[]): Promise<void> {
    const letters = this.plan.hasQueue ? await this.letters() : [];
    const batches = letters.map(({ attributes }) => Number(attributes.batch_id!.split("-").at(-1)));
    const expected = this.plan.hasQueue ? failures.map(({ batch_index }) => batch_index) : [];
    const sorted = (list: number[]) => [...list].sort((a, b) => a - b).join();
    if (sorted(batches) !== sorted(expected))
      this.wrong(`letters about ${sorted(batches)}, not ${sorted(expected)}`);
    for (const [at, { body }] of letters.entries()) {
      if (body !== JSON.stringify(itemsOf(this.plan, batches[at]!)))
        this.wrong(`the letter about batch ${batches[at]} has ${body.slice(0, 200)}`);
    }
  }

  /** Every prediction once, in order; and nothing else is left in the store. */
  private checkOutput(failures: Failure[]): void {
    const { plan, places, id } = this;
    if (plan.place === "none") return;
    const directory = places.directoryOf(plan.place, id);
    const failed = new Set(failures.map(({ batch_index }) => batch_index));
    const faults = outputFaults(directory, plan, failed);
    for (const fault of faults) this.wrong(`the output in ${directory}: ${fault}`);
    if (faults.length === 0) places.remove(plan.place, id);
  }

  private checkRecord(job: JobView, failures: Failure[], deaths: Deaths): number {
    const counts = { B: new Map<number, number>(), E: new Map(), F: new Map(), X: new Map() };
    for (const [what, index] of this.record()) {
      const batches = counts[what as keyof typeof counts];
      batches.set(Number(index), (batches.get(Number(index)) ?? 0) + 1);
    }
    const { B, E, X } = counts;
    if (X.size > 0) this.wrong(`${X.size} batches came with the items of others`);
    const condemned = new Set(
      failures.filter(({ error }) => error.type !== "ValueError").map((one) => one.batch_index),
    );
    const failed = new Set(failures.map(({ batch_index }) => batch_index));
    for (let batch = 0; batch < this.plan.fails.length; batch++) {
      if (!B.has(batch) && !condemned.has(batch)) this.wrong(`batch ${batch} was never run`);
      if (!failed.has(batch) && !E.has(batch)) this.wrong(`batch ${batch} succeeded, and was never done`);
    }
    const runs = [...B.values()].reduce((sum, count) => sum + count, 0);
    const again = runs - job.batch_metrics.succeeded - job.batch_metrics.failed;
    const credit = this.plan.isSlow ? 1 : CREDIT_BATCHES_MAX;
    const most = credit * (this.plan.workers * deaths.controllers + deaths.workers);
    if (again > most) this.wrong(`${again} batches ran again, at most ${most} may`);
    return again;
  }

  private async failures(): Promise<Failure[]> {
    const failures: Failure[] = [];
    for (let cursor: number | null = -1; cursor !== null; ) {
      const query: string = cursor < 0 ? "?limit=500" : `?limit=500&cursor=${cursor}`;
      const page: { failures: Failure[]; next_cursor: number | null } = await this.read(
        `/jobs/${this.id}/failures${query}`,
      );
      failures.push(...page.failures);
      cursor = page.next_cursor;
    }
    return failures;
  }

  private async letters(): Promise<{ body: string; attributes: Record<string, string> }[]> {
    type Letters = { messages: { body: string; attributes: Record<string, string> }[] };
    return (await this.read<Letters>(`/-/queues/${this.queue}/messages?limit=500`)).messages;
  }

  /** Repeats until a process answers. */
  private async read<T>(path: string): Promise<T> {
    const token = readFileSync(join(this.server.dataDir, "admin-token"), "utf8").trim();
    const headers = { authorization: `Bearer ${token}` };
    for (;;) {
      const answer = await wholeAnswer(this.server.baseUrl + path, headers);
      if (answer?.status === 200) return JSON.parse(answer.text) as T;
      await pause(AGAIN_MS);
    }
  }
}

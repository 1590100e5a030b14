/** Configurations as a caller may see them: administrators see all of it, everybody else sees it without secrets. */
import type { Context } from "hono";
import type { Keys } from "../../access/keys.ts";
import { TimeSlices } from "../../base/clock.ts";
import { FairTurns } from "../../base/fair/fair-turns.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { CONFIGS_OF_A_SENDER_MAX } from "../../contracts/limits/responses.ts";
import type { SecretNames } from "../../contracts/secrets.ts";
import { isAdmin, isPermitted, senderOf } from "../requests/authorization.ts";
import { clientLeft } from "../requests/connection.ts";
import { encodeExact } from "./message-pack.ts";
import { shownJson } from "./shown-json.ts";

/** The size of each cache of configurations. Without it, each poll of a job would parse its configuration again. */
const KEPT = 200;
/** The secrets of a shorter configuration are hidden at once: 100 us. */
const AT_ONCE_CHARACTERS = 1024;
/** The secrets of others are hidden in slices: the largest takes 30 ms. */
const HIDING_SLICE_MS = 4;

export class ShownConfig {
  private readonly keys: Keys;
  private readonly names: SecretNames;
  /** By job; undefined if nothing is hidden. */
  private readonly ofJobs = new Map<string, string | undefined>();
  /** One long configuration is read and hidden at a time, because its parts take ten times the memory of its text. */
  private readonly turns = new FairTurns(CONFIGS_OF_A_SENDER_MAX);
  /** As MessagePack in base64, by the id of an API's version, whose configuration never changes, and by who may see. */
  private readonly ofApis = new Map<string, string>();

  constructor(keys: Keys, names: SecretNames) {
    this.keys = keys;
    this.names = names;
  }

  /** Whether the caller may read the names of all APIs, and the ids of their jobs. */
  mayNameOthers(c: Context): boolean {
    return isPermitted(c, this.keys, { scope: "view" });
  }

  /** How the control plane shows configurations: without secrets to a key with the scope `view`. */
  ofControl(c: Context): (spec: unknown) => unknown {
    return isAdmin(c, this.keys) ? (spec) => spec : (spec) => this.names.hideInSpec(spec);
  }

  /** The configuration of an API's version, as MessagePack in base64; `read` is undefined if it was removed. */
  spec(c: Context, apiId: string, read: (() => unknown) | undefined): string {
    // A removed version is empty. It is not cached, because it may be deployed again with the same id.
    if (read === undefined) return packed({});
    const isShown = isAdmin(c, this.keys);
    const id = `${isShown ? "all" : "hidden"} ${apiId}`;
    if (!this.ofApis.has(id)) keep(this.ofApis, id, packed(isShown ? read() : this.names.hideInSpec(read())));
    return this.ofApis.get(id)!;
  }

  /**
   * The configuration of a job, from the text that was sent. It never changes. Throws `rate_limited` if too many long ones
   * of the caller wait.
   */
  async ofJob(c: Context, jobId: string, sent: () => Promise<string>): Promise<string> {
    if (isAdmin(c, this.keys)) return sent();
    if (this.ofJobs.has(jobId)) return this.known(jobId, sent);
    return (await this.short(jobId, sent)) ?? this.long(c, jobId, sent);
  }

  private async known(jobId: string, sent: () => Promise<string>): Promise<string> {
    return this.ofJobs.get(jobId) ?? sent();
  }

  /** Undefined if it is long. */
  private async short(jobId: string, sent: () => Promise<string>): Promise<string | undefined> {
    const text = await sent();
    if (text.length > AT_ONCE_CHARACTERS) return undefined;
    return this.kept(jobId, text, atOnce(shownJson(text, this.names)));
  }

  /** Reads the text again in its turn, so that those in the queue hold none. */
  private async long(c: Context, jobId: string, sent: () => Promise<string>): Promise<string> {
    const turn = await this.turns.take(senderOf(c, this.keys), clientLeft(c));
    if (turn === "full") throw tooManyWait();
    // Nobody reads the response.
    if (turn === "left") return "{}";
    try {
      if (this.ofJobs.has(jobId)) return await this.known(jobId, sent);
      const text = await sent();
      return this.kept(jobId, text, await inSlices(shownJson(text, this.names)));
    } finally {
      this.turns.end();
    }
  }

  private kept(jobId: string, text: string, hidden: string | undefined): string {
    if (text !== "{}") keep(this.ofJobs, jobId, hidden);
    return hidden ?? text;
  }
}

function tooManyWait(): ServiceError {
  const message = `${CONFIGS_OF_A_SENDER_MAX} requests of this key or address for jobs with a long config wait already; wait for their responses first`;
  return new ServiceError("rate_limited", message, { retryAfterS: 1 });
}

function packed(spec: unknown): string {
  return encodeExact(spec).toString("base64");
}

function atOnce<Result>(steps: Generator<undefined, Result>): Result {
  for (;;) {
    const { value, done } = steps.next();
    if (done) return value;
  }
}

async function inSlices<Result>(steps: Generator<undefined, Result>): Promise<Result> {
  const slices = new TimeSlices(HIDING_SLICE_MS);
  await slices.rest();
  for (;;) {
    const { value, done } = steps.next();
    if (done) return value;
    if (slices.isOver) await slices.rest();
  }
}

function keep<Value>(kept: Map<string, Value>, id: string, value: Value): void {
  const [oldest] = kept.keys();
  if (kept.size >= KEPT) kept.delete(oldest!);
  kept.set(id, value);
}

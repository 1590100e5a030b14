/** Configurations as a caller may see them: administrators see all of it, everybody else sees it without secrets. */
import type { Context } from "hono";
import type { Keys } from "../../access/keys.ts";
import { TimeSlices } from "../../base/clock.ts";
import type { SecretNames } from "../../contracts/secrets.ts";
import { isAdmin } from "../requests/authorization.ts";
import { clientLeft } from "../requests/connection.ts";
import { encodeExact } from "./message-pack.ts";
import { shownJson } from "./shown-json.ts";

/** The size of each cache of configurations. Without it, each poll of a job would parse its configuration again. */
const KEPT = 200;
/** The secrets of a shorter configuration are hidden at once: 100 us. */
const AT_ONCE_CHARACTERS = 1024;
/** The secrets of others are hidden in slices: the largest takes 30 ms. */
const HIDING_SLICE_MS = 4;

/** A configuration whose secrets are to be hidden, once, for all who ask for it meanwhile. */
interface Hiding {
  readers: AbortSignal[];
  text: Promise<string>;
}

export class ShownConfig {
  private readonly keys: Keys;
  private readonly names: SecretNames;
  /** By job; undefined if nothing is hidden. */
  private readonly ofJobs = new Map<string, string | undefined>();
  /** By job. One is read and parsed at a time, because a parsed one takes ten times the memory of its text. */
  private readonly hiding = new Map<string, Hiding>();
  private last: Promise<unknown> = Promise.resolve();
  /** As MessagePack in base64, by the id of an API's version, whose configuration never changes, and by who may see. */
  private readonly ofApis = new Map<string, string>();

  constructor(keys: Keys, names: SecretNames) {
    this.keys = keys;
    this.names = names;
  }

  /** Whether the caller may read the names of all APIs, and the ids of their jobs. */
  mayNameOthers(c: Context): boolean {
    return isAdmin(c, this.keys);
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

  /** The configuration of a job, from the text that was sent. It never changes. */
  async ofJob(c: Context, jobId: string, sent: () => Promise<string>): Promise<string> {
    if (isAdmin(c, this.keys)) return sent();
    if (this.ofJobs.has(jobId)) return this.ofJobs.get(jobId) ?? sent();
    const text = await sent();
    if (text.length <= AT_ONCE_CHARACTERS) return this.kept(jobId, text, atOnce(shownJson(text, this.names)));
    const left = clientLeft(c);
    const running = this.hiding.get(jobId);
    running?.readers.push(left);
    return running?.text ?? this.begin(jobId, sent, left);
  }

  private begin(jobId: string, sent: () => Promise<string>, left: AbortSignal): Promise<string> {
    const readers = [left];
    const text = this.last.then(async () => {
      try {
        return await this.hide(jobId, sent, readers);
      } finally {
        this.hiding.delete(jobId);
      }
    });
    this.hiding.set(jobId, { readers, text });
    this.last = text.catch(() => {});
    return text;
  }

  /** Reads the text again, so that those in the queue hold none. */
  private async hide(jobId: string, sent: () => Promise<string>, readers: AbortSignal[]): Promise<string> {
    // Nobody reads the response, and the next one in the queue should not wait for it.
    if (readers.every(({ aborted }) => aborted)) return "{}";
    const text = await sent();
    return this.kept(jobId, text, await inSlices(shownJson(text, this.names)));
  }

  private kept(jobId: string, text: string, hidden: string | undefined): string {
    if (text !== "{}") keep(this.ofJobs, jobId, hidden);
    return hidden ?? text;
  }
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

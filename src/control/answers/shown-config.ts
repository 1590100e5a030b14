/** Configurations as a caller may see them: administrators see all of it, everybody else sees it without secrets. */
import type { Context } from "hono";
import type { Keys } from "../../access/keys.ts";
import { FairTurns } from "../../base/fair/fair-turns.ts";
import { TimeSlices } from "../../base/loop/turns.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { CONFIG_BYTES_MAX } from "../../contracts/limits/configuration.ts";
import {
  CONFIGS_OF_A_SENDER_MAX,
  SHOWN_VERSIONS_CHARACTERS_MAX,
  SHOWN_VERSIONS_MAX,
} from "../../contracts/limits/responses.ts";
import type { SecretNames } from "../../contracts/secrets.ts";
import { isAdmin, isPermitted, senderOf } from "../requests/authorization.ts";
import { clientLeft } from "../requests/connection.ts";
import { KeptTexts } from "./kept-texts.ts";
import { encodeExact } from "./message-pack.ts";
import { shownJson, shownSpecJson } from "./shown-json.ts";

/** The size of the caches by number. Without them, each poll of a job would parse its configuration again. */
const KEPT = 200;
/** ... and of all by characters: the longest 200 configurations of jobs. */
const KEPT_CHARACTERS = KEPT * CONFIG_BYTES_MAX;
/** The secrets of a shorter configuration are hidden at once: 100 us. */
const AT_ONCE_CHARACTERS = 1024;
/** The secrets of others are hidden in slices: the largest takes 30 ms. */
const HIDING_SLICE_MS = 4;

/** The configuration of what was removed. It is not kept, because it may come back. */
const NOTHING = "{}";

const NONE = new KeptTexts({ texts: 0, characters: 0 });

/** A configuration whose secrets are to be hidden. */
interface Sent {
  id: string;
  /** Reads its text. */
  read: () => Promise<string>;
  hide: typeof shownJson;
  /** Undefined in it: nothing is hidden. */
  kept: KeptTexts;
  /** Whether a text without secrets is kept, too: it takes long to read. */
  isUnchangedKept: boolean;
}

export class ShownConfig {
  private readonly keys: Keys;
  private readonly names: SecretNames;
  private readonly ofJobs = new KeptTexts({ texts: KEPT, characters: KEPT_CHARACTERS });
  /** Of versions of APIs, as JSON text, by who may see. */
  private readonly ofVersions = new KeptTexts({
    texts: SHOWN_VERSIONS_MAX,
    characters: SHOWN_VERSIONS_CHARACTERS_MAX,
  });
  /**
   * One long configuration of a job, and one of a version, is read and hidden at a time, because its parts take ten
   * times the memory of its text. A list of APIs does not wait for those who ask for jobs.
   */
  private readonly turnsOfJobs = new FairTurns(CONFIGS_OF_A_SENDER_MAX);
  private readonly turnsOfVersions = new FairTurns(CONFIGS_OF_A_SENDER_MAX);
  /** As MessagePack in base64, by the id of an API's version, whose configuration never changes, and by who may see. */
  private readonly ofApis = new KeptTexts({ texts: KEPT, characters: 2 * KEPT_CHARACTERS });

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
    const known = this.ofApis.get(id);
    if (known !== undefined) return known;
    const text = packed(isShown ? read() : this.names.hideInSpec(read()));
    this.ofApis.keep(id, text);
    return text;
  }

  /**
   * The configuration of an API's version, as JSON text. It never changes, so that it is read and hidden once by its id.
   * Throws `rate_limited` if too many long ones of the caller wait.
   */
  async ofVersion(c: Context, versionId: string, read: () => Promise<string>): Promise<string> {
    const kept = this.ofVersions;
    if (!isAdmin(c, this.keys)) {
      const id = `hidden ${versionId}`;
      return this.hidden(c, { id, read, hide: shownSpecJson, kept, isUnchangedKept: true });
    }
    const id = `all ${versionId}`;
    const known = kept.get(id);
    if (known !== undefined) return known;
    const text = await read();
    if (text !== NOTHING) kept.keep(id, text);
    return text;
  }

  /** The entry from which an API was deployed, as JSON text. It is not kept. Throws like `ofVersion`. */
  async submitted(c: Context, read: () => Promise<string>): Promise<string> {
    if (isAdmin(c, this.keys)) return read();
    return this.hidden(c, { id: "", read, hide: shownSpecJson, kept: NONE, isUnchangedKept: false });
  }

  /**
   * The configuration of a job, from the text that was sent. It never changes. Throws `rate_limited` if too many long ones
   * of the caller wait.
   */
  async ofJob(c: Context, jobId: string, sent: () => Promise<string>): Promise<string> {
    if (isAdmin(c, this.keys)) return sent();
    const kept = this.ofJobs;
    return this.hidden(c, { id: jobId, read: sent, hide: shownJson, kept, isUnchangedKept: false });
  }

  private async hidden(c: Context, sent: Sent): Promise<string> {
    return (await known(sent)) ?? (await this.short(sent)) ?? this.long(c, sent);
  }

  /** Undefined if it is long. */
  private async short(sent: Sent): Promise<string | undefined> {
    const text = await sent.read();
    if (text.length > AT_ONCE_CHARACTERS) return undefined;
    return keep(sent, text, atOnce(sent.hide(text, this.names)));
  }

  /** Reads the text again in its turn, so that those in the queue hold none. */
  private async long(c: Context, sent: Sent): Promise<string> {
    const turns = sent.kept === this.ofJobs ? this.turnsOfJobs : this.turnsOfVersions;
    const turn = await turns.take(senderOf(c, this.keys), clientLeft(c));
    if (turn === "full") throw tooManyWait();
    // Nobody reads the response.
    if (turn === "left") return NOTHING;
    try {
      const shown = await known(sent);
      if (shown !== undefined) return shown;
      const text = await sent.read();
      return keep(sent, text, await inSlices(sent.hide(text, this.names)));
    } finally {
      turns.end();
    }
  }
}

/** As it was shown before; undefined if it is not kept. */
async function known({ kept, id, read }: Sent): Promise<string | undefined> {
  return kept.has(id) ? (kept.get(id) ?? read()) : undefined;
}

function keep({ kept, id, isUnchangedKept }: Sent, text: string, hidden: string | undefined): string {
  if (text !== NOTHING) kept.keep(id, isUnchangedKept ? (hidden ?? text) : hidden);
  return hidden ?? text;
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

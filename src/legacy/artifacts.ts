/**
 * The computed results of an application as files: a directory for each id (python/quern_application/artifacts.py
 * writes them).
 */
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { timestamp } from "../base/clock.ts";
import { removeTree } from "../base/files/remove-tree.ts";
import { TimeSlices } from "../base/loop/turns.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";
import { RESOURCE_STATE_BYTES_MAX, RESULT_SHOWN_BYTES_MAX } from "../contracts/limits/responses.ts";
import { readBounded } from "./read-bounded.ts";

export interface ArtifactState {
  state: "running" | "succeeded" | "failed" | "terminated";
  started_time: string;
  ended_time?: string;
  /** Why it failed. */
  reason?: string;
}

/** A result that is too long to be shown, and the file that has the whole. */
export interface LeftOut {
  leftOut: { file: string; bytes: number };
}

/** A result that Python wrote; undefined if there is none. */
export type Result = { content: unknown } | LeftOut | undefined;

/** Shared by all who read results. */
export const RESULT_SLICES = new TimeSlices(SLICE_MS);

export class Artifacts {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  path(...names: string[]): string {
    return join(this.directory, ...names);
  }

  /** The states of the ids that have one. */
  async states(ids: readonly string[]): Promise<Map<string, ArtifactState>> {
    const found = new Map<string, ArtifactState>();
    for (const id of ids) {
      const state = this.read(id);
      if (state !== undefined) found.set(id, state);
      if (RESULT_SLICES.isOver) await RESULT_SLICES.rest();
    }
    return found;
  }

  /** The value of an aggregate. `shown`: what one response shows of all values, of which this one's bytes are taken. */
  async value(id: string, shown: { bytesLeft: number }): Promise<Result> {
    const read = await this.result(id, "value.json", Math.min(RESULT_SHOWN_BYTES_MAX, shown.bytesLeft));
    if (read === undefined || "leftOut" in read) return read;
    shown.bytesLeft -= read.bytes;
    return { content: (read.content as { value: unknown }).value };
  }

  metrics(id: string): Promise<Result> {
    return this.result(id, "metrics.json", RESULT_SHOWN_BYTES_MAX);
  }

  /** Ends resources in state `running` with this state: nothing computes them any more. */
  async endRunning(ids: readonly string[], state: "failed" | "terminated", reason: string): Promise<void> {
    for (const [id, before] of await this.states(ids))
      if (before.state === "running")
        await this.write(id, { ...before, state, reason, ended_time: timestamp() });
  }

  /** The ids that are not computed yet. */
  async missing(ids: readonly string[]): Promise<string[]> {
    const states = await this.states(ids);
    return ids.filter((id) => states.get(id)?.state !== "succeeded");
  }

  async hasFailed(ids: readonly string[]): Promise<boolean> {
    const states = await this.states(ids);
    return [...states.values()].some(({ state }) => state === "failed" || state === "terminated");
  }

  /** The first missing one of `shown` gets the reason; those that depend on it get no state. */
  async fail(ids: readonly string[], reason: string, shown = ids): Promise<void> {
    await this.endRunning(ids, "failed", reason);
    if (await this.hasFailed(ids)) return;
    const [firstMissing] = await this.missing(shown);
    if (firstMissing === undefined) return;
    const now = timestamp();
    await this.write(firstMissing, { state: "failed", reason, started_time: now, ended_time: now });
  }

  /** Forgets the states of resources that did not succeed, so that they are computed again. */
  async forgetFailures(ids: readonly string[]): Promise<void> {
    for (const [id, { state }] of await this.states(ids))
      if (state !== "succeeded") await rm(this.path(id, "state.json"), { force: true });
  }

  /** The ids of everything that this deployment or an earlier one began. */
  async ids(): Promise<string[]> {
    const names = await readdir(this.directory).catch(() => [] as string[]);
    return names.filter((entry) => /^[0-9a-f]{64}$/.test(entry));
  }

  /** Removes everything except these ids. */
  async prune(ids: ReadonlySet<string>): Promise<void> {
    for (const id of await this.ids()) if (!ids.has(id)) await removeTree(this.path(id));
  }

  private async result(
    id: string,
    name: string,
    most: number,
  ): Promise<{ content: unknown; bytes: number } | LeftOut | undefined> {
    if (RESULT_SLICES.isOver) await RESULT_SLICES.rest();
    const read = readBounded(this.path(id, name), most);
    if (read === undefined) return undefined;
    if (typeof read !== "string") return { leftOut: { file: this.path(id, name), bytes: read.bytes } };
    return { content: JSON.parse(withoutInfinities(read)), bytes: Buffer.byteLength(read) };
  }

  private read(id: string): ArtifactState | undefined {
    const read = readBounded(this.path(id, "state.json"), RESOURCE_STATE_BYTES_MAX);
    if (typeof read !== "object") return read === undefined ? undefined : (JSON.parse(read) as ArtifactState);
    const time = timestamp(BigInt(Math.floor(read.changedMs)) * 1_000_000n);
    const reason = `its state has ${read.bytes} bytes, more than ${RESOURCE_STATE_BYTES_MAX}; deploy it again`;
    return { state: "failed", started_time: time, ended_time: time, reason };
  }

  private async write(id: string, state: ArtifactState): Promise<void> {
    await mkdir(this.path(id), { recursive: true });
    await writeFile(this.path(id, "state.json.new"), JSON.stringify(state));
    await rename(this.path(id, "state.json.new"), this.path(id, "state.json"));
  }
}

/** Python writes Infinity and NaN without quotes. Outside strings, this turns them into strings. */
function withoutInfinities(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g, (found) =>
    found.startsWith('"') ? found : JSON.stringify(found),
  );
}

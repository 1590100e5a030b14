/**
 * Checks an output by reading it again: each part against what was written, and that every batch that succeeded is there
 * once, in order (docs/contract/output.md#verify).
 */
import { createHash } from "node:crypto";
import { OneEachTurn } from "../../base/loop/turns.ts";
import { ObjectMissing, type ObjectStore } from "../../object-store/object-store.ts";
import type { Found } from "../output/compare-object.ts";
import { MANIFEST, type Manifest } from "../output/manifest.ts";
import { chunksOf } from "../output/part-chunks.ts";
import type { Part } from "../output/part-rows.ts";
import { countLines, NotRows, RowScanner } from "../output/row-scanner.ts";

/** What is read of a part, and looked at in one turn of the event loop: 3 ms if its rows are as short as possible. */
const CHECKED_EACH_TURN_BYTES = 256 * 1024;
/** All checks take turns: ten that read at the same time looked at what they had read in one turn. */
const TURNS = new OneEachTurn();

/** Of batches that come in a wrong order, only the first are told. */
const DIFFERENCES_MAX = 10;

/** A part as it was written. */
type WrittenPart = Pick<Part, "name" | "rows" | "bytes" | "sha256" | "unpacked_bytes">;

/** What was found in one part; `differences` is empty if it is as it should be. */
export interface CheckedPart {
  path: string;
  rows: number;
  bytes: number;
  differences: string[];
}

/** The sum of all parts. */
export interface CheckedOutput {
  ok: boolean;
  parts: number;
  rows: number;
  bytes: number;
  batches: number;
  /** Of the whole: those of a part are in its own. */
  differences: string[];
}

export class OutputCheck {
  private readonly sum = { ok: true, parts: 0, rows: 0, bytes: 0, batches: 0 };
  /** The last batch that was found. */
  private last = -1;
  private readonly store: ObjectStore;
  private readonly prefix: string;

  constructor(store: ObjectStore, prefix: string) {
    this.store = store;
    this.prefix = prefix;
  }

  /** Call it for each part, in order. Yields after each chunk. */
  async *part(part: WrittenPart): AsyncGenerator<undefined, CheckedPart> {
    const found: CheckedPart = { path: part.name, rows: 0, bytes: 0, differences: [] };
    try {
      const sha256 = yield* this.read(part, found);
      found.differences.push(...differences(part, { ...found, sha256 }));
    } catch (error) {
      if (error instanceof ObjectMissing) found.differences.push("it is missing");
      else if (error instanceof NotRows) found.differences.push(error.message);
      else throw error;
    }
    this.sum.parts++;
    this.sum.rows += found.rows;
    this.sum.bytes += found.bytes;
    this.sum.ok &&= found.differences.length === 0;
    return found;
  }

  /** Call it after the last part. `stored`: what is in the place of the manifest. */
  whole({ rows, batches }: Manifest, stored: Found["is"]): CheckedOutput {
    const { sum } = this;
    const differences =
      stored === "same" ? [] : [`${MANIFEST} ${stored === "missing" ? "is missing" : "was changed"}`];
    if (sum.rows !== rows) differences.push(`there are ${sum.rows} rows of ${rows}`);
    const withRows = batches.succeeded + (batches.partial ?? 0);
    if (sum.batches !== withRows)
      differences.push(`there are rows of ${sum.batches} batches, and ${withRows} should have some`);
    return { ...sum, ok: sum.ok && differences.length === 0, differences };
  }

  /** Returns the hash of the part. */
  private async *read(part: WrittenPart, found: CheckedPart): AsyncGenerator<undefined, string> {
    const hash = createHash("sha256");
    const scanner = new RowScanner();
    const onStored = (bytes: Buffer) => {
      hash.update(bytes);
      found.bytes += bytes.length;
    };
    const reading = { length: CHECKED_EACH_TURN_BYTES, turn: () => TURNS.turn(), onStored };
    for await (const chunk of chunksOf(this.store, this.prefix, part, reading)) {
      found.rows += countLines(chunk);
      for (const { batchIndex } of scanner.scan(chunk)) this.saw(batchIndex, found);
      yield;
    }
    scanner.end();
    return hash.digest("hex");
  }

  private saw(batchIndex: number, found: CheckedPart): void {
    if (batchIndex === this.last) return;
    if (batchIndex < this.last && found.differences.length < DIFFERENCES_MAX)
      found.differences.push(`batch ${batchIndex} comes after batch ${this.last}`);
    this.sum.batches++;
    this.last = batchIndex;
  }
}

function differences(
  named: WrittenPart,
  found: Pick<CheckedPart, "rows" | "bytes"> & { sha256: string },
): string[] {
  return (["rows", "bytes", "sha256"] as const)
    .filter((field) => named[field] !== found[field])
    .map((field) => `${field}: the manifest says ${named[field]}, the part has ${found[field]}`);
}

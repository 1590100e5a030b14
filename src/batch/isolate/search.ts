/**
 * Finds the guilty items of a batch whose attempts are used up: a part that fails is split into halves, until its items
 * stand alone (docs/decisions/0027-isolation.md). Pure: it knows neither workers nor a database.
 *
 * For g guilty items in a batch of n it asks for at most 2 * g * ceil(log2(n)) calls of `predict()`. Each part that is
 * split has a guilty item, each guilty item is in at most ceil(log2(n)) of them, and a split costs two calls. No part
 * counts as guilty without a call of its own: it may have failed for its size, or for its neighbours.
 */
import type { RowsPlace } from "../rows/rows-place.ts";

/**
 * `open`: it has to be tried. `good`: `predict()` returned. `guilty`: it failed and is not split any more; it has one
 * item, unless what `predict()` returned was not one value an item.
 */
export type PartState = "open" | "good" | "guilty";

/** Items of a batch, from `first` to the one before `next`. */
export interface BatchPart {
  first: number;
  next: number;
  state: PartState;
  /** Failed calls of `predict()` that had these items. */
  attempts: number;
  /** Where the rows of a good part are; undefined if the job has no output. */
  place?: RowsPlace | undefined;
}

export class Search {
  /** In order; together they have each item of the batch once. */
  private parts: BatchPart[];
  /** The parts before this one are not open. */
  private at = 0;

  constructor(parts: readonly BatchPart[]) {
    this.parts = [...parts];
    this.advance();
  }

  /** The search in a batch that has failed as a whole. It must have two items at least. */
  static begin(items: number, attempts: number): Search {
    return new Search(halves({ first: 0, next: items, state: "open", attempts }));
  }

  /** The part that is tried next, and until its result is known; undefined if none is left. */
  get current(): BatchPart | undefined {
    return this.parts[this.at];
  }

  get all(): readonly BatchPart[] {
    return this.parts;
  }

  has(state: PartState): boolean {
    return this.parts.some((part) => part.state === state);
  }

  /** The current part has succeeded. Returns the parts that changed; each replaces the one with its first item. */
  succeeded(place: RowsPlace | undefined): BatchPart[] {
    return this.replace([{ ...this.parts[this.at]!, state: "good", place }]);
  }

  /** The current part has failed: it is guilty if it cannot be split. Returns the parts that changed. */
  failed(maySplit: boolean): BatchPart[] {
    const part = this.parts[this.at]!;
    const failed = { ...part, attempts: part.attempts + 1 };
    if (maySplit && part.next - part.first > 1) return this.replace(halves(failed));
    return this.replace([{ ...failed, state: "guilty" }]);
  }

  private replace(parts: BatchPart[]): BatchPart[] {
    this.parts.splice(this.at, 1, ...parts);
    this.advance();
    return parts;
  }

  private advance(): void {
    while (this.at < this.parts.length && this.parts[this.at]!.state !== "open") this.at++;
  }
}

function halves(part: BatchPart): BatchPart[] {
  const middle = Math.ceil((part.first + part.next) / 2);
  return [
    { ...part, next: middle },
    { ...part, first: middle },
  ];
}

/**
 * The parts of a settled batch, for as long as a new round may try its guilty ones: adjacent good parts are one.
 * `place`: of the rows of all good parts, which lie behind each other there in the order of items.
 */
export function settledParts(parts: readonly BatchPart[], place: RowsPlace | undefined): BatchPart[] {
  let offset = place?.offset ?? 0;
  const merged: BatchPart[] = [];
  for (const part of parts) {
    const { bytes = 0, rows = 0 } = part.place ?? {};
    const own = part.state === "good" && place !== undefined ? { ...place, offset, bytes, rows } : undefined;
    offset += own?.bytes ?? 0;
    const last = merged.at(-1);
    if (last === undefined || last.state !== "good" || part.state !== "good") {
      merged.push({ ...part, place: own });
    } else {
      last.next = part.next;
      if (own !== undefined)
        last.place = { ...last.place!, bytes: last.place!.bytes + bytes, rows: last.place!.rows + rows };
    }
  }
  return merged;
}

/** The parts of a batch whose guilty ones are to be tried again, those that `isWanted`: adjacent ones together. */
export function reopenedParts(
  parts: readonly BatchPart[],
  isWanted: (part: BatchPart) => boolean,
): BatchPart[] {
  const opened: BatchPart[] = [];
  for (const part of parts) {
    const isOpen = part.state === "open" || (part.state === "guilty" && isWanted(part));
    const last = opened.at(-1);
    if (!isOpen) opened.push({ ...part });
    else if (last?.state === "open") last.next = part.next;
    else opened.push({ ...part, state: "open", attempts: 0 });
  }
  return opened;
}

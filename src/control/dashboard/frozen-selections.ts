/**
 * Selections: lists of jobs or messages as they matched when they were counted (docs/contract/jobs.md#selections). In
 * memory, bounded, and gone after ten minutes or a restart. Only whoever made a selection may act on it.
 */
import { newToken } from "../../base/ids.ts";
import { ServiceError } from "../../contracts/errors.ts";
import {
  SELECTED_IDS_MAX,
  SELECTED_JOBS_MAX,
  SELECTION_KEPT_MS,
  SELECTIONS_MAX,
  SELECTIONS_OF_A_KEY_MAX,
} from "../../contracts/limits/responses.ts";

export interface Selected {
  kind: "jobs" | "messages";
  ids: readonly string[];
  /** The API that all jobs are of, if the selection named one. */
  api?: string | undefined;
  /** Of messages. */
  queue?: string | undefined;
}

interface Frozen extends Selected {
  owner: string;
  expiresMs: number;
  isInUse: boolean;
}

export class FrozenSelections {
  private readonly all = new Map<string, Frozen>();

  /**
   * A key that holds too much loses its oldest selections; if all hold too much, whoever holds most does. Throws
   * `rate_limited` if that is not enough. `nowMs` is monotonic.
   */
  freeze(owner: string, selected: Selected, nowMs: number): string {
    this.forgetOld(nowMs);
    const count = selected.ids.length;
    const isMineTooMuch = () => {
      const mine = this.of(owner);
      return mine.length >= SELECTIONS_OF_A_KEY_MAX || idsIn(mine) + count > SELECTED_JOBS_MAX;
    };
    while (isMineTooMuch()) if (!this.dropOldest(owner)) throw tooMuch("actions on your selections");
    while (idsIn([...this.all.values()]) + count > SELECTED_IDS_MAX) {
      const largest = this.largestOwner();
      const isLarger = idsIn(this.of(largest)) > idsIn(this.of(owner)) + count;
      if (!isLarger || !this.dropOldest(largest)) throw tooMuch("the selections of others");
    }
    // An empty one has no ids to count, but whoever has many addresses may make many.
    while (this.all.size >= SELECTIONS_MAX)
      if (!this.dropOldest(this.ownerOfMost())) throw tooMuch("the selections of others");
    const id = newToken();
    this.all.set(id, { ...selected, owner, expiresMs: nowMs + SELECTION_KEPT_MS, isInUse: false });
    return id;
  }

  private of(owner: string): Frozen[] {
    return [...this.all.values()].filter((frozen) => frozen.owner === owner);
  }

  private largestOwner(): string {
    const owners = [...new Set([...this.all.values()].map(({ owner }) => owner))];
    return owners.reduce((one, other) => (idsIn(this.of(other)) > idsIn(this.of(one)) ? other : one));
  }

  /** Whoever has the most selections that are not in use; of several, the one with the fewest ids. */
  private ownerOfMost(): string {
    const counts = new Map<string, { owner: string; selections: number; ids: number }>();
    for (const { owner, isInUse, ids } of this.all.values()) {
      if (isInUse) continue;
      const before = counts.get(owner) ?? { owner, selections: 0, ids: 0 };
      counts.set(owner, { owner, selections: before.selections + 1, ids: before.ids + ids.length });
    }
    const [most] = [...counts.values()].sort((a, b) => b.selections - a.selections || a.ids - b.ids);
    return most?.owner ?? "";
  }

  /** False if all that are left are in use. */
  private dropOldest(owner: string): boolean {
    for (const [id, frozen] of this.all)
      if (frozen.owner === owner && !frozen.isInUse) return this.all.delete(id);
    return false;
  }

  /** Undefined if it is unknown, or another one's. */
  find(id: string, owner: string, nowMs: number): Selected | undefined {
    this.forgetOld(nowMs);
    const frozen = this.all.get(id);
    return frozen?.owner === owner ? frozen : undefined;
  }

  /** One action at a time. Throws `wrong_state`, or `selection_not_found`. */
  async use<T>(id: string, action: () => Promise<T>): Promise<T> {
    const frozen = this.all.get(id);
    // It expired since it was found, or another one took its place.
    if (frozen === undefined) throw selectionNotFound(id);
    if (frozen.isInUse)
      throw new ServiceError(
        "wrong_state",
        "an action on this selection is in progress; wait for its response",
      );
    frozen.isInUse = true;
    try {
      return await action();
    } finally {
      frozen.isInUse = false;
    }
  }

  private forgetOld(nowMs: number): void {
    for (const [id, { expiresMs, isInUse }] of this.all)
      if (expiresMs <= nowMs && !isInUse) this.all.delete(id);
  }
}

function idsIn(selections: readonly Selected[]): number {
  return selections.reduce((sum, { ids }) => sum + ids.length, 0);
}

function tooMuch(what: string): ServiceError {
  const message = `${what} hold too many jobs and messages now; try again in some minutes, or select fewer`;
  return new ServiceError("rate_limited", message, { retryAfterS: 60 });
}

export function selectionNotFound(id: string): ServiceError {
  const minutes = SELECTION_KEPT_MS / 60_000;
  const why = `it is older than ${minutes} minutes, the server was restarted since, or another key made it`;
  return new ServiceError(
    "selection_not_found",
    `there is no selection "${id.slice(0, 64)}": ${why}; select and count again`,
  );
}

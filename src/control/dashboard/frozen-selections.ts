/**
 * Selections: lists of jobs or messages as they matched when they were counted (docs/contract/jobs.md#selections). In
 * memory, bounded, and gone after ten minutes or a restart. Only whoever made a selection may act on it.
 */
import { newToken } from "../../base/ids.ts";
import { ServiceError } from "../../contracts/errors.ts";
import {
  SELECTED_IDS_MAX,
  SELECTION_KEPT_MS,
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

  /** Throws `rate_limited` if others hold too many. `nowMs` is monotonic. */
  freeze(owner: string, selected: Selected, nowMs: number): string {
    this.forgetOld(nowMs);
    const mine = [...this.all].filter(([, frozen]) => frozen.owner === owner && !frozen.isInUse);
    for (const [id] of mine.slice(0, Math.max(0, mine.length + 1 - SELECTIONS_OF_A_KEY_MAX)))
      this.all.delete(id);
    const held = [...this.all.values()].reduce((sum, { ids }) => sum + ids.length, 0);
    if (held + selected.ids.length > SELECTED_IDS_MAX)
      throw new ServiceError(
        "rate_limited",
        `selections hold ${held} jobs and messages now, and at most ${SELECTED_IDS_MAX}; try again in some minutes, or select fewer`,
        { retryAfterS: 60 },
      );
    const id = newToken();
    this.all.set(id, { ...selected, owner, expiresMs: nowMs + SELECTION_KEPT_MS, isInUse: false });
    return id;
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

export function selectionNotFound(id: string): ServiceError {
  const minutes = SELECTION_KEPT_MS / 60_000;
  const why = `it is older than ${minutes} minutes, the server was restarted since, or another key made it`;
  return new ServiceError(
    "selection_not_found",
    `there is no selection "${id.slice(0, 64)}": ${why}; select and count again`,
  );
}

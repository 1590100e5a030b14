/** Where enqueuing stops and resumes. Pure. */
import type { Reached } from "../../object-store/select/select-files.ts";
import type { EnqueueCursor } from "./enqueue-commits.ts";

/** A position in the input, up to which all is enqueued. */
export interface Position {
  reached: Reached;
  /** The file that is not read to its end, if there is one. */
  file?: FilePosition | undefined;
}

export type FilePosition = Omit<EnqueueCursor, "own_bytes">;

/** Where the committed segments end. `isPaths`: the items are the paths of files. */
export function committedPosition(cursor: EnqueueCursor | undefined, isPaths: boolean): Position {
  if (cursor === undefined) return { reached: { entry: 0, path: undefined } };
  const { entry, path, etag, offset, line } = cursor;
  // A cursor of `endCursor` is in no file.
  const isInFile = !isPaths && entry < Number.MAX_SAFE_INTEGER;
  return { reached: { entry, path }, file: isInFile ? { entry, path, etag, offset, line } : undefined };
}

/**
 * Whether a turn is over. `hasProgress`: it has come further than the turn before. `isAwaited`: the job holds something
 * that another one waits for.
 */
export type IsTurnOver = (hasProgress: boolean, isAwaited: boolean) => boolean;

/** Asked wherever enqueuing can stop. */
export class EnqueuePause {
  private readonly isCancelled: () => boolean;
  private readonly isTurnOver: IsTurnOver;
  private readonly from: Position;
  private hasProgress = false;

  /** `from`: where the turn begins. */
  constructor(isCancelled: () => boolean, isTurnOver: IsTurnOver, from: Position) {
    this.isCancelled = isCancelled;
    this.isTurnOver = isTurnOver;
    this.from = from;
  }

  /** Whether to stop at this position. `isAwaited`: the job holds something that another one waits for. */
  isDue(at: Position, isAwaited = false): boolean {
    this.hasProgress ||= isElsewhere(at, this.from);
    return this.isCancelled() || this.isTurnOver(this.hasProgress, isAwaited);
  }
}

/** Positions never go back, so another one is further. */
function isElsewhere(a: Position, b: Position): boolean {
  return (
    a.reached.entry !== b.reached.entry ||
    a.reached.path !== b.reached.path ||
    a.file?.offset !== b.file?.offset
  );
}

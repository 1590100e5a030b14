/** Where the rows of a settled batch are, until they are in a part of the job's output. */
export interface RowsPlace {
  /** The number of a file of the spool, from 1. */
  file: number;
  offset: number;
  bytes: number;
  rows: number;
}

/** A batch that failed has no rows. */
export const NO_ROWS: RowsPlace = { file: 0, offset: 0, bytes: 0, rows: 0 };

/** A batch that is settled by the next commit. */
export interface SettledRows {
  batchIndex: number;
  place: RowsPlace;
}

/** What a step of the schema is. */

/** Moves rows in many transactions. After a crash it starts again, so it must skip the rows that were moved. */
export interface MovingStep {
  /** Finds the `id` of the next row to move, after the given one. */
  next: string;
  /** Statements that move this row. Each takes its id. */
  move: readonly string[];
}

/** The statements of a step are one transaction. */
export type SchemaStep = readonly string[] | MovingStep;

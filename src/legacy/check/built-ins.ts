/**
 * The aggregators and transformers that come with Quern (docs/contract/applications.md#built-ins), under `quern.`;
 * `cortex.` means the same. The content id of a result has the name only: what computes something else needs another name.
 */

/** Types of number columns, and of all scalar columns. */
const NUMBER = "INT_COLUMN|FLOAT_COLUMN";
const ANY = "INT_COLUMN|FLOAT_COLUMN|STRING_COLUMN";

export interface Implementation {
  /** Types of columns by the name of the input. A list stands for a list of columns. */
  columns: Readonly<Record<string, string | readonly string[]>>;
  args: Readonly<Record<string, unknown>>;
  /** A value type for an aggregator, a column type for a transformer. */
  output: unknown;
}

const one = (type: string, output: unknown, args: Record<string, unknown> = {}): Implementation => ({
  columns: { col: type },
  args,
  output,
});
const pair = (output: unknown): Implementation => ({
  columns: { col1: NUMBER, col2: NUMBER },
  args: {},
  output,
});

export const AGGREGATORS: Readonly<Record<string, Implementation>> = {
  approx_count_distinct: one(ANY, "INT", { rsd: "FLOAT" }),
  avg: one(NUMBER, "FLOAT"),
  mean: one(NUMBER, "FLOAT"),
  collect_set_int: one("INT_COLUMN", ["INT"]),
  collect_set_float: one("FLOAT_COLUMN", ["FLOAT"]),
  collect_set_string: one("STRING_COLUMN", ["STRING"]),
  count: one(ANY, "INT"),
  count_distinct: { columns: { col: ANY, cols: [ANY] }, args: {}, output: "INT" },
  covar_pop: pair("FLOAT"),
  covar_samp: pair("FLOAT"),
  kurtosis: one(NUMBER, "FLOAT"),
  skewness: one(NUMBER, "FLOAT"),
  max_int: one("INT_COLUMN", "INT"),
  max_float: one("FLOAT_COLUMN", "FLOAT"),
  max_string: one("STRING_COLUMN", "STRING"),
  min_int: one("INT_COLUMN", "INT"),
  min_float: one("FLOAT_COLUMN", "FLOAT"),
  min_string: one("STRING_COLUMN", "STRING"),
  stddev: one(NUMBER, "FLOAT"),
  stddev_pop: one(NUMBER, "FLOAT"),
  stddev_samp: one(NUMBER, "FLOAT"),
  sum_int: one("INT_COLUMN", "INT"),
  sum_float: one("FLOAT_COLUMN", "FLOAT"),
  sum_distinct_int: one("INT_COLUMN", "INT"),
  sum_distinct_float: one("FLOAT_COLUMN", "FLOAT"),
  var_pop: one(NUMBER, "FLOAT"),
  var_samp: one(NUMBER, "FLOAT"),
  variance: one(NUMBER, "FLOAT"),
  bucket_boundaries: one(NUMBER, ["FLOAT"], { num_buckets: "INT" }),
  index_string: one("STRING_COLUMN", ["STRING"]),
  class_distribution_string: one("STRING_COLUMN", { STRING: "FLOAT" }),
  class_distribution_int: one("INT_COLUMN", { INT: "FLOAT" }),
};

export const TRANSFORMERS: Readonly<Record<string, Implementation>> = {
  normalize: {
    columns: { num: NUMBER },
    args: { mean: "INT|FLOAT", stddev: "INT|FLOAT" },
    output: "FLOAT_COLUMN",
  },
  index_string: { columns: { text: "STRING_COLUMN" }, args: { index: ["STRING"] }, output: "INT_COLUMN" },
  bucketize: { columns: { num: NUMBER }, args: { bucket_boundaries: ["FLOAT"] }, output: "INT_COLUMN" },
};

/** The part after `quern.` or `cortex.`; undefined for a name that the user defines. */
export function builtInName(name: string): string | undefined {
  return /^(?:quern|cortex)\.(.+)$/.exec(name)?.[1];
}

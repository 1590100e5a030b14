/**
 * The data of a legacy declarative application (docs/contract/applications.md#application-kinds): a CSV or Parquet file,
 * and the columns in it.
 */
import * as z from "zod";
import { BUCKET_SCHEMES } from "../store-paths.ts";
import { positive, resourceName } from "./app-values.ts";

const csvConfig = z.strictObject({
  sep: z.string().optional(),
  encoding: z.string().optional(),
  quote: z.string().optional(),
  escape: z.string().optional(),
  comment: z.string().optional(),
  header: z.boolean().optional(),
  ignore_leading_white_space: z.boolean().optional(),
  ignore_trailing_white_space: z.boolean().optional(),
  null_value: z.string().optional(),
  nan_value: z.string().optional(),
  positive_inf: z.string().optional(),
  negative_inf: z.string().optional(),
  max_columns: positive.optional(),
  max_chars_per_column: positive.optional(),
  multiline: z.boolean().optional(),
  char_to_escape_quote_escaping: z.string().optional(),
  empty_value: z.string().optional(),
});
/** Without a scheme it is a file in the application's directory. */
const storePath = z
  .string()
  .regex(
    new RegExp(`^(${BUCKET_SCHEMES.join("|")}|s3a)://[^/]|^file:///|^(?!/)(?!.*://).`),
    "must be a path such as s3://bucket/key or file:///path, or a file of this directory",
  );
export const csvData = z.strictObject({
  type: z.literal("csv"),
  path: storePath,
  drop_null: z.boolean().default(false),
  schema: z.array(resourceName, "must be a list of column names").min(1, "must have at least one column"),
  csv_config: csvConfig.optional(),
});
export const parquetData = z.strictObject({
  type: z.literal("parquet"),
  path: storePath,
  drop_null: z.boolean().default(false),
  schema: z
    .array(z.strictObject({ parquet_column_name: z.string(), raw_column_name: resourceName }))
    .min(1, "must have at least one column"),
});

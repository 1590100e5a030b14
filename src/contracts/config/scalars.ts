/** The single values of a configuration: durations, quantities, counts, names and addresses, each with its rule. */
import * as z from "zod";
import { CONFIG_TEXT_LENGTH_MAX, DURATION_MS_MAX, REPLICAS_MAX } from "../limits/configuration.ts";
import { parseDurationMs } from "./durations.ts";

const DURATION_RULE = "must be a duration such as 500ms, 30s or 1m30s";
const isShort = (text: string) => (parseDurationMs(text) ?? 0) <= DURATION_MS_MAX;
const SHORT_RULE = `must be at most ${DURATION_MS_MAX / 3_600_000}h`;
export const duration = z
  .string(DURATION_RULE)
  .refine((text) => (parseDurationMs(text) ?? 0) > 0, DURATION_RULE)
  .refine(isShort, SHORT_RULE);
/** The maximum of both quantities, for messages. */
export const QUANTITY_MAX_TEXT = "100000 CPUs, 1024Ti";
export const quantity = (
  parse: (text: string) => number | undefined,
  { least, most }: { least: number; most: number },
  rule: string,
) =>
  z
    .union([z.string(), z.number()], rule)
    .refine((value) => (parse(String(value)) ?? 0) >= least, rule)
    .refine((value) => (parse(String(value)) ?? 0) <= most, `must be at most ${QUANTITY_MAX_TEXT}`)
    .transform(String);
/** A path, an address or a key. Its length is limited because it goes into requests, file names and messages. */
export const shortText = z
  .string()
  .max(CONFIG_TEXT_LENGTH_MAX, `must have at most ${CONFIG_TEXT_LENGTH_MAX} characters`)
  .refine((text) => !text.includes("\0"), "must not contain the character NUL");
export const countFrom = (least: number) =>
  z.int("must be an integer").min(least, `must be an integer of at least ${least}`);
/** A stabilization period, which may be left out. */
export const durationOrNone = z
  .string(DURATION_RULE)
  .refine((text) => parseDurationMs(text) !== undefined, DURATION_RULE)
  .refine(isShort, SHORT_RULE);
export const replicasFrom = (least: number) =>
  countFrom(least).max(REPLICAS_MAX, `must be at most ${REPLICAS_MAX}`);
export const fraction = z.number().min(0, "must be at least 0").lt(1, "must be below 1");
export const percentOrCount = z.union(
  [
    z.int().min(0, "must be at least 0").max(REPLICAS_MAX, `must be at most ${REPLICAS_MAX}`),
    z.string().regex(/^\d{1,4}%$/, "must be a count or a percentage such as 25%"),
  ],
  `must be a count of at most ${REPLICAS_MAX} or a percentage such as 25%`,
);

/** A leading slash is added and a trailing slash is removed, as in Cortex. */
export const endpoint = shortText
  .transform((text) => `/${text.replace(/^\/+/, "").replace(/\/+$/, "")}`)
  .refine(
    (path) => /^(\/[\w.~-]+)+$/.test(path) && !path.startsWith("/-") && !/\/\.\.?(\/|$)/.test(path),
    "must be a path such as /models/iris, of letters, digits, -, _, . and ~, that does not begin with /-",
  );

export const apiName = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,41}$/,
    "must begin with a lower-case letter and have only a-z, 0-9 and -, at most 42 characters",
  );

/** `*`, or the value that a browser sends as Origin. */
export const origin = z
  .string()
  .regex(/^(\*|https?:\/\/[^/\s]+)$/, 'must be "*" or an origin such as https://example.com, without a path');

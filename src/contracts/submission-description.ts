/** A submission as JSON Schema: what the checks in code say beyond its fields' types is said here too. */
import * as z from "zod";
import { INPUT_VARIANTS, submissionSchema } from "./jobs.ts";
import { GLOB_LENGTH_MAX } from "./limits.ts";

/** Crockford's base 32, lower case: a ULID, whose 128 bits leave the first character three. */
export const JOB_ID_PATTERN = "^[0-7][0-9a-hjkmnp-tv-z]{25}$";

/** Legal fields that this release refuses are left out. */
const REFUSED = ["queue_dead_letter_queue", "output", "on_failure"];

type Properties = Record<string, { properties: Record<string, object> }>;

export function submissionDescription(): object {
  const {
    $schema: _,
    properties,
    ...rest
  } = z.toJSONSchema(submissionSchema, {
    io: "input",
    unrepresentable: "any",
  });
  const members = structuredClone(properties) as unknown as Properties;
  for (const name of REFUSED) delete members[name];
  members.item_list!.properties.items = { type: "array", minItems: 1, items: {} };
  const globs = { type: "array", items: { type: "string", minLength: 1, maxLength: GLOB_LENGTH_MAX } };
  for (const variant of ["file_path_lister", "delimited_files"]) {
    const fields = members[variant]!.properties;
    fields.store_paths = { type: "array", minItems: 1, items: { type: "string", pattern: "^file:///" } };
    fields.includes = globs;
    fields.excludes = globs;
  }
  return {
    ...rest,
    properties: members,
    oneOf: INPUT_VARIANTS.map((variant) => ({ required: [variant] })),
  };
}

/**
 * A submission as JSON Schema. It allows all that the server accepts, and refuses as much as a schema can. A schema
 * cannot express a glob's syntax, the total length of a list, the depth of `config` or that a file exists.
 */
import * as z from "zod";
import { INPUT_VARIANTS, submissionSchema } from "../jobs.ts";
import { SPLIT_ITEMS_MAX } from "../limits/jobs.ts";
import { GLOB_LENGTH_MAX, GLOBS_MAX, PATH_BYTES_MAX, QUEUE_NAME_LENGTH_MAX } from "../limits/submissions.ts";
import { QUEUE_NAME_PATTERN } from "../queues.ts";
import { STORE_PATH_PATTERN } from "../store-paths.ts";

/** A ULID in Crockford's base 32, lower case. Its 128 bits leave three bits for the first character. */
export const JOB_ID_PATTERN = "^[0-7][0-9a-hjkmnp-tv-z]{25}$";

interface ObjectSchema {
  properties: Record<string, object>;
  required?: string[];
}

export function submissionDescription(): object {
  const { $schema: _, ...schema } = z.toJSONSchema(submissionSchema, { io: "input", unrepresentable: "any" });
  const whole = withNulls(schema as unknown as ObjectSchema);
  const members = schema.properties as unknown as Record<string, ObjectSchema>;
  const deadLetters = orNull(deadLetterQueue(members.queue_dead_letter_queue!));
  return {
    ...whole,
    properties: {
      ...whole.properties,
      item_list: orNull(itemList(members.item_list!)),
      delimited_files: orNull(files(members.delimited_files!)),
      file_path_lister: orNull(files(members.file_path_lister!)),
      queue_dead_letter_queue: deadLetters,
      sqs_dead_letter_queue: { ...deadLetters, description: "an older name of queue_dead_letter_queue" },
    },
    oneOf: INPUT_VARIANTS.map(given),
    not: { allOf: ["queue_dead_letter_queue", "sqs_dead_letter_queue"].map(given) },
    if: { required: ["on_failure"], properties: { on_failure: { const: "isolate" } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { properties: Object.fromEntries(INPUT_VARIANTS.map((variant) => [variant, SPLITTABLE])) },
  };
}

/** An input with `on_failure: isolate`. */
const SPLITTABLE = { properties: { batch_size: { maximum: SPLIT_ITEMS_MAX } } };

function itemList(schema: ObjectSchema): ObjectSchema {
  return {
    ...schema,
    properties: { ...schema.properties, items: { type: "array", minItems: 1, items: {} } },
  };
}

function deadLetterQueue(schema: ObjectSchema): ObjectSchema {
  const arn = { type: "string", pattern: QUEUE_NAME_PATTERN, maxLength: QUEUE_NAME_LENGTH_MAX };
  return { ...schema, properties: { ...schema.properties, arn } };
}

/** One of the two names of the paths, but not both. */
function files(schema: ObjectSchema): object {
  const { store_paths, ...others } = schema.properties;
  const path = { type: "string", pattern: STORE_PATH_PATTERN, maxLength: PATH_BYTES_MAX };
  const paths = { ...store_paths, items: path };
  const globs = {
    type: "array",
    maxItems: GLOBS_MAX,
    items: { type: "string", minLength: 1, maxLength: GLOB_LENGTH_MAX },
  };
  return {
    ...schema,
    properties: {
      ...others,
      store_paths: orNull(paths),
      s3_paths: { ...orNull(paths), description: "an older name of store_paths" },
      includes: orNull(globs),
      excludes: orNull(globs),
    },
    required: schema.required!.filter((name) => name !== "store_paths"),
    oneOf: ["store_paths", "s3_paths"].map(given),
  };
}

/** `null` counts as absent (docs/contract/submitting.md#null-is-absent). */
function withNulls(schema: ObjectSchema): ObjectSchema {
  const properties = Object.entries(schema.properties).map(([name, member]) => [
    name,
    schema.required?.includes(name) ? member : orNull(member),
  ]);
  return { ...schema, properties: Object.fromEntries(properties) as ObjectSchema["properties"] };
}

function orNull(schema: object): object {
  return { anyOf: [schema, { type: "null" }] };
}

/** A member that is present and not `null`. */
function given(name: string): object {
  return { required: [name], properties: { [name]: { not: { type: "null" } } } };
}

/** The fields of `predictor`. */
import * as z from "zod";
import { ENV_BYTES_MAX, ENV_VARIABLES_MAX, THREADS_MAX } from "../limits/configuration.ts";
import { countFrom, duration, shortText } from "./scalars.ts";

function isSmallEnv(env: Record<string, string>): boolean {
  const entries = Object.entries(env);
  const bytes = entries.reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value),
    0,
  );
  return entries.length <= ENV_VARIABLES_MAX && bytes <= ENV_BYTES_MAX;
}

const PYTHON_RULE = 'must be a Python version of two numbers, such as "3.11"';
const UNQUOTED_PYTHON_RULE = `must be in quotes, such as python: "3.11", because YAML reads 3.10 as 3.1`;

export const predictorSchema = z.strictObject({
  type: z.literal("python", 'must be "python"').default("python"),
  path: shortText.min(1),
  config: z.record(z.string(), z.unknown(), "must be a map").nullish(),
  env: z
    .record(z.string(), z.string("must be a string; put the value in quotes"))
    .refine(
      (env) => Object.keys(env).every((key) => !key.startsWith("QUERN_")),
      "names beginning with QUERN_ are reserved",
    )
    .refine(
      (env) => !Object.entries(env).flat().join("").includes("\0"),
      "must not contain the character NUL, which no environment variable can have",
    )
    .refine(
      isSmallEnv,
      `must have at most ${ENV_VARIABLES_MAX} variables, of ${ENV_BYTES_MAX} bytes together`,
    )
    .default({}),
  /** A version; by default the server's own Python. deploy.ts checks whether this machine has it. */
  python: z
    .string({ error: ({ input }) => (typeof input === "number" ? UNQUOTED_PYTHON_RULE : PYTHON_RULE) })
    .regex(/^\d{1,2}\.\d{1,3}$/, PYTHON_RULE)
    .optional(),
  python_path: shortText.optional(),
  processes_per_replica: countFrom(1).max(100, "must be at most 100").default(1),
  threads_per_process: countFrom(1).max(THREADS_MAX, `must be at most ${THREADS_MAX}`).default(1),
  server_side_batching: z
    .strictObject({ max_batch_size: z.int().min(2).max(1024), batch_interval: duration })
    .optional(),
  timeout: duration.optional(),
  /** From the start of a worker's process to the end of `__init__`; STARTUP_TIMEOUT if absent. */
  startup_timeout: duration.optional(),
  /** A worker is replaced after so many predictions, or batches of a job. */
  max_requests: countFrom(1).optional(),
  /** A worker is replaced when its process is this old. */
  max_age: duration.optional(),
  /** Jobs of a version share worker processes. It has no default: a default would change the ids of older versions. */
  reuse_worker: z.boolean().optional(),
  expose_errors: z.boolean().default(false),
  /**
   * Whether `headers` and `query_params` include the caller's credentials. It has no default: a default would change
   * the ids of older versions.
   */
  pass_credentials: z.boolean().optional(),
  /** How a `str` is sent. It has no default, for the same reason. */
  response: z.enum(["json", "text"], 'must be "json" or "text"').optional(),
});

/** Values that several resources of a legacy declarative application have. */
import * as z from "zod";
import { RESOURCE_NAME_LENGTH_MAX } from "../limits/configuration.ts";

export const resourceName = z
  .string()
  .max(RESOURCE_NAME_LENGTH_MAX, `must have at most ${RESOURCE_NAME_LENGTH_MAX} characters`)
  .regex(/^[A-Za-z0-9_-]+$/, "must have only letters, digits, _ and -");
export const positive = z.int("must be an integer").min(1, "must be at least 1");

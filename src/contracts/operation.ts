/** What the tables of operations are made of. */
import * as z from "zod";
import type { ErrorCode } from "./errors.ts";
import type { KeyScope } from "./keys.ts";

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  about: string;
  /** JSON Schema. */
  schema: object;
  /** Those of a path always are. */
  required?: true;
}

export interface Operation {
  id: string;
  method: "get" | "post" | "delete";
  /** In OpenAPI's way of writing parameters. */
  path: string;
  about: string;
  /** The key that it needs; none where it is open. */
  scope: KeyScope | undefined;
  parameters: readonly Parameter[];
  body?: { type: string; schema: object; isOptional?: true };
  /** By content type; of `application/json` with its schema. */
  answers: Readonly<Record<string, z.ZodType | null>>;
  errors: readonly ErrorCode[];
}

export function jsonSchema(schema: z.ZodType, io: "input" | "output" = "output"): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}

/** A schema of a parameter. */
export const text = { type: "string" };

export const follow: Parameter = {
  name: "follow",
  in: "query",
  about: "go on until it ends",
  schema: { type: "boolean" },
};

/** Logs come as text or as records. */
export const LOGS = { "text/plain": null, "application/x-ndjson": null };

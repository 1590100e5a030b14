/** The types and helpers with which the tables of operations are written. */
import * as z from "zod";
import type { ErrorCode } from "../errors.ts";
import type { KeyScope } from "../keys.ts";

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  about: string;
  /** JSON Schema. */
  schema: object;
  /** Parameters of a path are always required. */
  required?: true;
}

export interface Operation {
  id: string;
  method: "get" | "post" | "delete";
  /** With parameters as OpenAPI writes them. */
  path: string;
  about: string;
  /** The scope of the key that the operation needs; undefined if it needs no key. `admin` opens every operation. */
  scope: KeyScope | undefined;
  /** An operation on jobs that changes nothing: a key with the scope `view` opens it too. */
  isRead?: true;
  parameters: readonly Parameter[];
  body?: { type: string; schema: object; isOptional?: true };
  /** Of a success; 200 if it is left out. */
  status?: 201;
  /** By content type; `application/json` has its schema. */
  answers: Readonly<Record<string, z.ZodType | null>>;
  errors: readonly ErrorCode[];
}

export function jsonSchema(schema: z.ZodType, io: "input" | "output" = "output"): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}

/** The schema of a text parameter. */
export const text = { type: "string" };

export const follow: Parameter = {
  name: "follow",
  in: "query",
  about: "follow until it ends",
  schema: { type: "boolean" },
};

/** The scopes that open an operation. `admin` opens all, and is listed only where no other does. */
export function scopesOf({ scope, isRead }: Pick<Operation, "scope" | "isRead">): KeyScope[] {
  return [...(scope === undefined ? [] : [scope]), ...(isRead ? ["view" as const] : [])];
}

/** The errors of every operation of the control plane that needs a key. */
export const CONTROL_ERRORS = ["unauthorized", "forbidden"] as const;

/** Logs are sent as text or as records. */
export const LOGS = { "text/plain": null, "application/x-ndjson": null };

/** The operations on keys. */
import { newKeySchema, rotateKeySchema } from "../keys.ts";
import { createdKeySchema, keyListSchema, messageSchema } from "./answers.ts";
import { CONTROL_ERRORS, jsonSchema, type Operation, type Parameter, text } from "./operation.ts";

const id: Parameter = { name: "id", in: "path", about: "the key's id", schema: text };
/** The errors of a change with a body. */
const BODY_ERRORS = [
  "malformed_json",
  "invalid_request",
  "body_too_large",
  "origin_not_allowed",
  "server_unavailable",
] as const;

export const KEY_OPERATIONS: readonly Operation[] = [
  {
    id: "listKeys",
    method: "get",
    path: "/-/keys",
    about: "the keys, without their secrets",
    scope: "admin",
    parameters: [],
    answers: { "application/json": keyListSchema },
    errors: CONTROL_ERRORS,
  },
  {
    id: "createKey",
    method: "post",
    path: "/-/keys",
    about: "create a key; it is shown only once",
    scope: "admin",
    parameters: [],
    body: { type: "application/json", schema: jsonSchema(newKeySchema, "input") },
    answers: { "application/json": createdKeySchema },
    errors: [...CONTROL_ERRORS, ...BODY_ERRORS],
  },
  {
    id: "rotateKey",
    method: "post",
    path: "/-/keys/{id}/rotate",
    about:
      "create a key with the same permission; the old key expires after the grace period (24h; of the admin token 0s)",
    scope: "admin",
    parameters: [{ ...id, about: "the key's id, or admin for the admin token" }],
    body: { type: "application/json", schema: jsonSchema(rotateKeySchema, "input"), isOptional: true },
    answers: { "application/json": createdKeySchema },
    errors: [...CONTROL_ERRORS, "key_not_found", "wrong_state", ...BODY_ERRORS],
  },
  {
    id: "revokeKey",
    method: "delete",
    path: "/-/keys/{id}",
    about: "revoke a key; the response comes once every connected gateway has applied it",
    scope: "admin",
    parameters: [id],
    answers: { "application/json": messageSchema },
    errors: [...CONTROL_ERRORS, "key_not_found", "origin_not_allowed", "server_unavailable"],
  },
];

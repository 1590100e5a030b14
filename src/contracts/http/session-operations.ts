/** The operations on sessions of browsers, and on the versions that the dashboard compares. */
import * as z from "zod";
import { messageSchema } from "./answers.ts";
import { CONTROL_ERRORS, jsonSchema, type Operation, text } from "./operation.ts";

const time = z.string().meta({ description: "RFC 3339, in UTC" });
const scope = z.enum(["admin", "view"]);
const secret = z.string().min(1, "must not be empty");

/** The body of a sign-in: a key, or a code of `POST /-/session/codes`. */
export const signInSchema = z
  .strictObject({ code: secret.optional(), key: secret.optional() })
  .refine(({ code, key }) => (code === undefined) !== (key === undefined), "must have a key or a code")
  // The same rule for the API's description, which cannot express a refinement.
  .meta({ oneOf: [{ required: ["code"] }, { required: ["key"] }] });

const codeSchema = z.strictObject({
  code: z.string().meta({ description: "signs one browser in, once" }),
  expires_time: time,
  url: z.string().meta({ description: "the address of the dashboard that signs the browser in" }),
});
const signedInSchema = z.strictObject({
  scope,
  name: z.string().nullable().meta({ description: "the name of the key" }),
  expires_time: time,
});
export const sessionSchema = z.strictObject({
  scope: scope.nullable().meta({ description: "null: nobody is signed in who may use the dashboard" }),
  name: z.string().nullable(),
  expires_time: time.nullable(),
});
export const versionsSchema = z.strictObject({
  versions: z.array(
    z.strictObject({
      api_id: z.string(),
      deployed_time: time,
      is_current: z.boolean(),
      spec: z.unknown().meta({ description: "the configuration; secrets are hidden from a `view` key" }),
      files: z
        .array(
          z.strictObject({
            path: z.string(),
            size: z.int(),
            sha256: z.string().meta({
              description:
                "of the file for an `admin` key; for others another text, which is the same for the same content",
            }),
          }),
        )
        .nullable()
        .meta({ description: "null: they were changed or removed on the server since" }),
    }),
  ),
});

export const changesSchema = z.strictObject({
  changes: z.array(
    z.strictObject({
      time,
      kind: z.enum(["deployed", "rolled_back", "replica_ended"]),
      api_id: z.string().nullable().meta({ description: "the version that became the deployed one" }),
      former_api_id: z.string().nullable().meta({ description: "the one before; null for the first" }),
      by: z.string().nullable().meta({
        description: "the id of the key, or the subject of the token; null if none was needed, or unknown",
      }),
      by_name: z.string().nullable().meta({ description: "the key's name at that time" }),
      times: z.int().meta({ description: "replicas that ended within the minute" }),
      how: z.string().nullable().meta({ description: "how the last of these replicas ended" }),
    }),
  ),
});
export type ApiChanges = z.infer<typeof changesSchema>;

const lines = z.int().nullable();

const fileDiffSchema = z.strictObject({
  path: z.string(),
  change: z.enum(["added", "removed", "changed"]),
  added: lines.meta({ description: "lines; null: the file is too long to compare, or no text" }),
  removed: lines,
  text: z.string().nullable().meta({
    description: "a unified diff, for an `admin` key; null if it is too long, and for other keys",
  }),
});
export type FileDiff = z.infer<typeof fileDiffSchema>;

export const versionDiffSchema = z.strictObject({
  from: z.string().nullable().meta({ description: "null: there is no version before" }),
  to: z.string(),
  files: z
    .array(fileDiffSchema)
    .nullable()
    .meta({ description: "those that differ, by path; null: they were changed on the server since" }),
  files_left_out: z.int().meta({ description: "how many more differ" }),
});
export type VersionDiff = z.infer<typeof versionDiffSchema>;

export const SESSION_OPERATIONS: readonly Operation[] = [
  {
    id: "createSignInCode",
    method: "post",
    path: "/-/session/codes",
    about: "create a code that signs a browser in to the dashboard, once and within a minute",
    scope: "view",
    parameters: [],
    status: 201,
    answers: { "application/json": codeSchema },
    errors: [...CONTROL_ERRORS, "origin_not_allowed", "rate_limited"],
  },
  {
    id: "signIn",
    method: "post",
    path: "/-/session",
    about: "sign a browser in with a key or a code; the response sets a cookie",
    scope: undefined,
    parameters: [],
    body: { type: "application/json", schema: jsonSchema(signInSchema, "input") },
    status: 201,
    answers: { "application/json": signedInSchema },
    errors: [
      ...CONTROL_ERRORS,
      "malformed_json",
      "invalid_request",
      "body_too_large",
      "origin_not_allowed",
      "rate_limited",
      "server_unavailable",
    ],
  },
  {
    id: "getSession",
    method: "get",
    path: "/-/session",
    about: "who is signed in",
    scope: undefined,
    parameters: [],
    answers: { "application/json": sessionSchema },
    errors: [],
  },
  {
    id: "signOut",
    method: "delete",
    path: "/-/session",
    about: "sign out; the response comes once every connected gateway has applied it",
    scope: undefined,
    parameters: [],
    answers: { "application/json": messageSchema },
    errors: ["origin_not_allowed", "server_unavailable"],
  },
  {
    id: "listVersions",
    method: "get",
    path: "/-/apis/{name}/versions",
    about: "the versions of an API with their configurations and files, newest first",
    scope: "view",
    parameters: [{ name: "name", in: "path", about: "the API's name", schema: text }],
    answers: { "application/json": versionsSchema },
    errors: [...CONTROL_ERRORS, "api_not_found"],
  },
  {
    id: "listChanges",
    method: "get",
    path: "/-/apis/{name}/changes",
    about:
      "what happened to an API in two weeks, newest first: versions that were deployed or rolled back, with who did it, and replicas that ended unexpectedly",
    scope: "view",
    parameters: [{ name: "name", in: "path", about: "the API's name", schema: text }],
    answers: { "application/json": changesSchema },
    errors: [...CONTROL_ERRORS, "api_not_found"],
  },
  {
    id: "diffVersions",
    method: "get",
    path: "/-/apis/{name}/diff",
    about: "which files and lines differ between two versions of an API",
    scope: "view",
    parameters: [
      { name: "name", in: "path", about: "the API's name", schema: text },
      {
        name: "from",
        in: "query",
        about: "a version's id; the default is the one before `to`",
        schema: text,
      },
      { name: "to", in: "query", about: "a version's id; the default is the deployed version", schema: text },
    ],
    answers: { "application/json": versionDiffSchema },
    errors: [...CONTROL_ERRORS, "api_not_found", "invalid_request"],
  },
];

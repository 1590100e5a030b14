/** The operations on APIs: deploy, change, show and delete them (docs/contract/addresses.md#control-plane). */
import { apiListSchema, deployedSchema, describedApiSchema, messageSchema } from "./answers.ts";
import { CONTROL_ERRORS, follow, LOGS, type Operation, type Parameter, text } from "./operation.ts";

const name: Parameter = { name: "name", in: "path", about: "the API's name", schema: text };
const force: Parameter = {
  name: "force",
  in: "query",
  about:
    "cancel a deployment in progress: stop replicas that are starting, and an application's running computations",
  schema: { type: "boolean" },
};
const NAMED_API_ERRORS = [...CONTROL_ERRORS, "api_not_found"] as const;

/** The parameters of a configuration, in an archive or alone. */
const CONFIG_PARAMETERS: readonly Parameter[] = [
  { name: "config", in: "query", about: "name of the configuration file, for messages", schema: text },
  { name: "api", in: "query", about: "only these APIs", schema: { type: "array", items: text } },
  { name: "dry_run", in: "query", about: "check only", schema: { type: "boolean" } },
  force,
];
const DEPLOY_ERRORS = [
  ...CONTROL_ERRORS,
  "invalid_configuration",
  "invalid_request",
  "wrong_state",
  "body_too_large",
  "origin_not_allowed",
] as const;

export const API_OPERATIONS: readonly Operation[] = [
  {
    id: "deploy",
    method: "post",
    path: "/-/deploy",
    about: "deploy the APIs of an archive: config.yaml and the directory project, as tar.gz",
    scope: "admin",
    parameters: [
      ...CONFIG_PARAMETERS,
      {
        name: "environment",
        in: "query",
        about: "environment of a declarative application (default dev)",
        schema: text,
      },
    ],
    body: { type: "application/gzip", schema: { type: "string", format: "binary" } },
    answers: { "application/json": deployedSchema },
    errors: [...DEPLOY_ERRORS, "invalid_project"],
  },
  {
    id: "patchApis",
    method: "post",
    path: "/-/patch",
    about: "change the configuration of deployed APIs, which keep their deployed files",
    scope: "admin",
    parameters: CONFIG_PARAMETERS,
    body: { type: "application/yaml", schema: text },
    answers: { "application/json": deployedSchema },
    errors: [...DEPLOY_ERRORS, "api_not_found"],
  },
  {
    id: "listApis",
    method: "get",
    path: "/-/apis",
    about: "list what is deployed",
    scope: "view",
    parameters: [],
    answers: { "application/json": apiListSchema },
    errors: CONTROL_ERRORS,
  },
  {
    id: "getApi",
    method: "get",
    path: "/-/apis/{name}",
    about: "one API, with its replicas and history",
    scope: "view",
    parameters: [name],
    answers: { "application/json": describedApiSchema },
    errors: NAMED_API_ERRORS,
  },
  {
    id: "deleteApi",
    method: "delete",
    path: "/-/apis/{name}",
    about: "delete an API; its jobs are stopped",
    scope: "admin",
    parameters: [
      name,
      {
        name: "records",
        in: "query",
        about:
          "also remove the records, data and logs of its jobs; of an API that was deleted before, these alone",
        schema: { type: "boolean" },
      },
    ],
    answers: { "application/json": messageSchema },
    errors: [...NAMED_API_ERRORS, "wrong_state", "invalid_request", "origin_not_allowed"],
  },
  {
    id: "refreshApi",
    method: "post",
    path: "/-/apis/{name}/refresh",
    about: "start new replicas of the same version",
    scope: "admin",
    parameters: [name, force],
    answers: { "application/json": messageSchema },
    errors: [...NAMED_API_ERRORS, "wrong_state", "invalid_request", "origin_not_allowed"],
  },
  {
    id: "pauseApi",
    method: "post",
    path: "/-/apis/{name}/pause",
    about: "begin no new batch of a batch API's jobs, also of those that are submitted later",
    scope: "admin",
    parameters: [name],
    answers: { "application/json": messageSchema },
    errors: [...NAMED_API_ERRORS, "wrong_state", "origin_not_allowed"],
  },
  {
    id: "unpauseApi",
    method: "post",
    path: "/-/apis/{name}/unpause",
    about: "continue the jobs of a paused API",
    scope: "admin",
    parameters: [name],
    answers: { "application/json": messageSchema },
    errors: [...NAMED_API_ERRORS, "wrong_state", "origin_not_allowed"],
  },
  {
    id: "rollbackApi",
    method: "post",
    path: "/-/apis/{name}/rollback",
    about: "deploy an earlier version again: the previous one, or the one that is named",
    scope: "admin",
    parameters: [name, { name: "api_id", in: "query", about: "the version's id", schema: text }],
    answers: { "application/json": messageSchema },
    errors: [...NAMED_API_ERRORS, "wrong_state", "origin_not_allowed"],
  },
  {
    id: "exportApi",
    method: "get",
    path: "/-/apis/{name}/export",
    about: "a version's configuration and files, as an archive that can be deployed",
    scope: "admin",
    parameters: [
      name,
      {
        name: "api_id",
        in: "query",
        about: "the version's id; the default is the deployed version",
        schema: text,
      },
    ],
    answers: { "application/gzip": null },
    errors: [...NAMED_API_ERRORS, "wrong_state"],
  },
  {
    id: "getApiLogs",
    method: "get",
    path: "/-/apis/{name}/logs",
    about: "the log of an API",
    scope: "view",
    parameters: [name, follow],
    answers: LOGS,
    errors: NAMED_API_ERRORS,
  },
];

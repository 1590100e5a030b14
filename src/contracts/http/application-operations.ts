/**
 * The operations on declarative applications (docs/contract/applications.md). They are deployed by `deploy`, as APIs
 * are.
 */
import { applicationListSchema, applicationSchema, NODE_KINDS } from "../config/applications.ts";
import { messageSchema } from "./answers.ts";
import { CONTROL_ERRORS, follow, LOGS, type Operation, type Parameter, text } from "./operation.ts";

const name: Parameter = { name: "name", in: "path", about: "the application's name", schema: text };
const force: Parameter = {
  name: "force",
  in: "query",
  about: "stop another deployment that is running",
  schema: { type: "boolean" },
};
const NAMED_ERRORS = [...CONTROL_ERRORS, "application_not_found"] as const;

export const APPLICATION_OPERATIONS: readonly Operation[] = [
  {
    id: "listApplications",
    method: "get",
    path: "/-/applications",
    about: "the declarative applications that are deployed, with their resources",
    scope: "view",
    parameters: [],
    answers: { "application/json": applicationListSchema },
    errors: CONTROL_ERRORS,
  },
  {
    id: "getApplication",
    method: "get",
    path: "/-/applications/{name}",
    about: "one application, with the status of every resource",
    scope: "view",
    parameters: [
      name,
      {
        name: "values",
        in: "query",
        about:
          "with the values of aggregates; a long one is left out, and `left_out` says where the whole is",
        schema: { type: "boolean" },
      },
    ],
    answers: { "application/json": applicationSchema },
    errors: NAMED_ERRORS,
  },
  {
    id: "deleteApplication",
    method: "delete",
    path: "/-/applications/{name}",
    about: "delete an application: its APIs, its models and its data",
    scope: "admin",
    parameters: [name],
    answers: { "application/json": messageSchema },
    errors: [...NAMED_ERRORS, "origin_not_allowed"],
  },
  {
    id: "refreshApplication",
    method: "post",
    path: "/-/applications/{name}/refresh",
    about:
      "read the data again and recompute everything; APIs serve the old models until the new ones are ready",
    scope: "admin",
    parameters: [name, force],
    answers: { "application/json": messageSchema },
    errors: [...NAMED_ERRORS, "wrong_state", "invalid_request", "origin_not_allowed"],
  },
  {
    id: "getResourceLogs",
    method: "get",
    path: "/-/applications/{name}/resources/{resource}/logs",
    about: "the log of a resource's computation, or of an API's replicas",
    scope: "view",
    parameters: [
      name,
      { name: "resource", in: "path", about: "the resource's name", schema: text },
      {
        name: "kind",
        in: "query",
        about: "its kind, if two resources have this name",
        schema: { type: "string", enum: [...NODE_KINDS] },
      },
      follow,
    ],
    answers: LOGS,
    errors: [...NAMED_ERRORS, "resource_not_found"],
  },
];

/**
 * Generates the OpenAPI 3.1 document (spec.openapis.org) from the table of operations and the schemas that check
 * requests.
 */
import { ERRORS, type ErrorCode } from "../errors.ts";
import { problemSchema } from "./answers.ts";
import { jsonSchema, type Operation, type Parameter, scopesOf } from "./operation.ts";
import { OPERATIONS } from "./operations.ts";

/** Errors that every operation may return. */
const EVERYWHERE: readonly ErrorCode[] = [
  "misdirected_request",
  "database_unavailable",
  "server_unavailable",
  "standby",
];
/**
 * A segment of a path (gateway/door/request-target.ts): no control characters, and neither `.` nor `..`. No name begins
 * with a dot.
 */
const SEGMENT = "^[^.\\x00-\\x1f\\x7f][^\\x00-\\x1f\\x7f]*$";

export function openApiDocument(version: string, baseUrl: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of OPERATIONS) {
    const { path, method } = operation;
    paths[path] = { ...paths[path], [method]: describe(operation) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Quern",
      version,
      description:
        "Jobs of batch APIs, and the control plane. A prediction is a POST to /{api} of a real-time API; the predictor defines its bodies.",
    },
    servers: [{ url: baseUrl }],
    paths,
    components: {
      schemas: { Problem: jsonSchema(problemSchema) },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        key: { type: "apiKey", in: "header", name: "X-API-Key" },
      },
    },
  };
}

function describe(operation: Operation): Record<string, unknown> {
  const { id, about, scope, parameters, body } = operation;
  return {
    operationId: id,
    summary: about,
    ...(scope === undefined
      ? { security: [] }
      : {
          description: `Needs a key with the scope ${scopeWords(operation)}.`,
          security: [{ bearer: [] }, { key: [] }],
        }),
    parameters: parameters.map(describeParameter),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.isOptional !== true,
            content: {
              [body.type]: { schema: body.schema },
            },
          },
        }),
    responses: { [operation.status ?? 200]: success(operation), ...failures(operation) },
  };
}

function scopeWords(operation: Operation): string {
  return [...new Set([...scopesOf(operation), "admin"])].map((scope) => `\`${scope}\``).join(" or ");
}

function describeParameter({ name, in: place, about, schema, required }: Parameter) {
  const isOfPath = place === "path";
  const described = isOfPath ? { pattern: SEGMENT, ...schema } : schema;
  return { name, in: place, description: about, required: isOfPath || required === true, schema: described };
}

function success({ answers }: Operation) {
  const content = Object.entries(answers).map(([type, schema]) => [
    type,
    { schema: schema === null ? streamSchema(type) : jsonSchema(schema) },
  ]);
  return { description: "the requested content", content: Object.fromEntries(content) };
}

/** The document does not describe events: a schema would have to describe the whole stream. */
function streamSchema(type: string): object {
  return type === "text/event-stream" ? {} : { type: "string" };
}

/** One response per status, which lists its error codes. */
function failures({ errors, parameters, scope }: Operation): Record<string, unknown> {
  const byStatus = new Map<number, ErrorCode[]>();
  const ofPath: ErrorCode[] = parameters.some((one) => one.in === "path") ? ["invalid_request"] : [];
  // A key may have a rate, and has a limit of open streams.
  const ofKey: ErrorCode[] = scope === undefined ? [] : ["rate_limited"];
  for (const code of new Set([...errors, ...EVERYWHERE, ...ofPath, ...ofKey])) {
    const [status] = ERRORS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      { description: codes.map((code) => `\`${code}\`: ${ERRORS[code][1]}`).join("; "), content },
    ]),
  );
}

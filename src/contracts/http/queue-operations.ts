/** The operations on queues (docs/contract/failing-batches.md#shared-queues). */

import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, SEARCH_LENGTH_MAX } from "../limits/responses.ts";
import { QUEUE_CURSOR_PATTERN } from "../queues.ts";
import {
  deadLetterQueueSchema,
  letterListSchema,
  messageSchema,
  queueListSchema,
  queueSchema,
} from "./answers.ts";
import { CONTROL_ERRORS, type Operation, type Parameter, text } from "./operation.ts";
import { JOB_ID_PATTERN } from "./submission-description.ts";

const queue: Parameter = { name: "queue", in: "path", about: "a dead letter queue", schema: text };
const limit: Parameter = {
  name: "limit",
  in: "query",
  about: "at most this many",
  schema: { type: "integer", minimum: 1, maximum: LIST_LIMIT_MAX, default: LIST_LIMIT_DEFAULT },
};
const cursor = { name: "cursor", in: "query", about: "next_cursor of the previous page" } as const;
const search: Parameter = {
  ...{ name: "search", in: "query", about: "only messages with this text in their body or error" },
  schema: { type: "string", maxLength: SEARCH_LENGTH_MAX },
};
const QUEUE_ERRORS = [...CONTROL_ERRORS, "queue_not_found"] as const;

export const QUEUE_OPERATIONS: readonly Operation[] = [
  {
    id: "listQueues",
    method: "get",
    path: "/-/queues",
    about:
      "the dead letter queues that jobs name, by name; for SQS queues, the messages that wait to be sent",
    scope: "view",
    parameters: [limit, { ...cursor, schema: { type: "string", pattern: QUEUE_CURSOR_PATTERN } }],
    answers: { "application/json": queueListSchema },
    errors: [...CONTROL_ERRORS, "invalid_request"],
  },
  {
    id: "getQueue",
    method: "get",
    path: "/-/queues/{queue}",
    about: "the counts of a dead letter queue, or of a job's own queue by the job's id (scope submit)",
    scope: "submit",
    isRead: true,
    parameters: [{ ...queue, about: "a dead letter queue, or a job's id" }],
    answers: { "application/json": queueSchema.or(deadLetterQueueSchema) },
    errors: QUEUE_ERRORS,
  },
  {
    id: "listMessages",
    method: "get",
    path: "/-/queues/{queue}/messages",
    about:
      "the messages of a dead letter queue, oldest first. A page of a search may have fewer than there are: go on at its cursor",
    scope: "view",
    parameters: [queue, limit, search, { ...cursor, schema: { type: "string", pattern: JOB_ID_PATTERN } }],
    answers: { "application/json": letterListSchema },
    errors: [...QUEUE_ERRORS, "invalid_request"],
  },
  {
    id: "purgeQueue",
    method: "delete",
    path: "/-/queues/{queue}/messages",
    about: "remove all messages of a dead letter queue",
    scope: "admin",
    parameters: [queue],
    answers: { "application/json": messageSchema },
    errors: [...QUEUE_ERRORS, "origin_not_allowed"],
  },
  {
    id: "deleteMessage",
    method: "delete",
    path: "/-/queues/{queue}/messages/{message}",
    about: "remove one message of a dead letter queue",
    scope: "admin",
    parameters: [queue, { name: "message", in: "path", about: "its message_id", schema: text }],
    answers: { "application/json": messageSchema },
    errors: [...QUEUE_ERRORS, "message_not_found", "origin_not_allowed"],
  },
];

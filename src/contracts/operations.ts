/**
 * Every operation of the HTTP surface but predictions, whose bodies are the users' own: one table, from which the OpenAPI
 * document, the reference, `/-/docs` and the 405s are made.
 */
import { APPLICATION_OPERATIONS } from "./application-operations.ts";
import { CONTROL_OPERATIONS } from "./control-operations.ts";
import { JOB_OPERATIONS } from "./job-operations.ts";
import type { Operation } from "./operation.ts";
import { QUEUE_OPERATIONS } from "./queue-operations.ts";

export const OPERATIONS: readonly Operation[] = [
  ...JOB_OPERATIONS,
  ...QUEUE_OPERATIONS,
  ...CONTROL_OPERATIONS,
  ...APPLICATION_OPERATIONS,
];

/**
 * Every HTTP operation except predictions, whose bodies users define. The OpenAPI document, the reference, `/-/docs`
 * and the 405 responses are generated from this table.
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

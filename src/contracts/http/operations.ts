/**
 * Every HTTP operation except predictions, whose bodies users define. The OpenAPI document, the reference, `/-/docs`
 * and the 405 responses are generated from this table.
 */

import { API_OPERATIONS } from "./api-operations.ts";
import { APPLICATION_OPERATIONS } from "./application-operations.ts";
import { EXPLAIN_OPERATIONS } from "./explain-operations.ts";
import { JOB_OPERATIONS } from "./job-operations.ts";
import { KEY_OPERATIONS } from "./key-operations.ts";
import type { Operation } from "./operation.ts";
import { OVERVIEW_OPERATIONS } from "./overview-operations.ts";
import { QUEUE_OPERATIONS } from "./queue-operations.ts";
import { ROUND_OPERATIONS } from "./round-operations.ts";
import { SERIES_OPERATIONS } from "./series-operations.ts";
import { SERVER_OPERATIONS } from "./server-operations.ts";
import { SESSION_OPERATIONS } from "./session-operations.ts";

export const OPERATIONS: readonly Operation[] = [
  ...JOB_OPERATIONS,
  ...ROUND_OPERATIONS,
  ...QUEUE_OPERATIONS,
  ...API_OPERATIONS,
  ...KEY_OPERATIONS,
  ...SESSION_OPERATIONS,
  ...SERVER_OPERATIONS,
  ...SERIES_OPERATIONS,
  ...APPLICATION_OPERATIONS,
  ...EXPLAIN_OPERATIONS,
  ...OVERVIEW_OPERATIONS,
];

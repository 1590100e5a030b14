/** Sends one of Quern's own errors as the response, and logs it if it is a 5xx. */
import type { ServerResponse } from "node:http";
import { reportFault } from "../../base/boundary.ts";
import { asServiceError, problemHeaders, type ServiceError, toProblem } from "../../contracts/errors.ts";
import { NOT_EMBEDDED } from "./answer-headers.ts";
import { ownFaults } from "./own-faults.ts";
import { unreadAnswers } from "./unread-answers.ts";

/** Never throws: if the error cannot be written, the connection ends. */
export function sendError(response: ServerResponse, error: unknown, requestId: string): void {
  const problem = asServiceError(error);
  const { method, url } = response.req;
  ownFaults.record(problem, { requestId, method: method!, url: url! });
  if (response.headersSent) {
    response.destroy();
    return;
  }
  try {
    writeProblem(response, problem, requestId);
  } catch (again) {
    reportFault(again, "an error's answer");
    response.destroy();
  }
}

function writeProblem(response: ServerResponse, problem: ServiceError, requestId: string): void {
  const body = JSON.stringify(toProblem(problem, requestId));
  response.writeHead(problem.status, {
    ...NOT_EMBEDDED,
    ...problemHeaders(problem),
    "content-length": Buffer.byteLength(body),
    "x-request-id": requestId,
  });
  response.end(body);
  unreadAnswers.add(response);
}

/** What a caller learns about an exception of user code. Pure. */
import { ServiceError } from "../../contracts/errors.ts";
import type { WorkerFault } from "../../protocol/messages.ts";

/** Converts an exception of user code to an error for the caller (docs/contract/predictor.md#exceptions). */
export function faultToError(fault: WorkerFault, apiName: string, exposeErrors: boolean): ServiceError {
  if (fault.stage === "payload")
    return new ServiceError(
      fault.type === "JsonError" ? "malformed_json" : "malformed_payload",
      fault.message,
    );
  const exposed = exposeErrors ? `\n${fault.traceback}` : "";
  if (fault.stage === "serialize") {
    return new ServiceError(
      "prediction_not_serializable",
      `the prediction cannot be sent: ${fault.message}; return plain values from predict()${exposed}`,
    );
  }
  if (fault.stage === "response")
    return new ServiceError("prediction_failed", `the predictor's response cannot be sent: ${fault.message}`);
  const cure = `\`quern logs ${apiName}\` has the traceback`;
  return new ServiceError(
    "prediction_failed",
    exposeErrors
      ? `${fault.type}: ${fault.message}; ${cure}${exposed}`
      : `predict() raised an exception; ${cure}`,
  );
}

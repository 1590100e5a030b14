/** The error of a step that makes an environment, on this machine or in a pod. Pure. */
import { EnvironmentError } from "./environment-error.ts";
import { explainInstallFailure } from "./install-failure.ts";

const LAST_LINES = 15;
/** The step that installs the requirements. */
export const REQUIREMENTS_STEP = "requirements.txt";

/** With the last lines of its `output`, and with what they mean in the first line. `cause`: that meaning, if known. */
export function stepFailed(what: string, output: string, cause: string | undefined): EnvironmentError {
  const lines = output.trim().split("\n").slice(-LAST_LINES).join("\n");
  return new EnvironmentError(`${what} failed:${cause === undefined ? "" : ` ${cause}`}\n${lines}`);
}

/** A pod that cannot run a worker, as its launcher tells it (docs/pods.md#health). */
export interface FailedPreparation {
  message: string;
  /** Because of its Python environment, not of its project's files. */
  is_of_environment: boolean;
  /** The step of the environment that failed, and what it printed last. */
  step: string | null;
  output: readonly string[];
  /** The version of the interpreter, such as `3.11`. */
  python: string | null;
}

/** As an error of this machine would be. */
export function preparationError(failed: FailedPreparation): Error {
  const { message, is_of_environment, step, output, python } = failed;
  if (!is_of_environment) return new Error(message);
  if (step === null || output.length === 0) return new EnvironmentError(message);
  const text = output.join("\n");
  const isExplained = step === REQUIREMENTS_STEP && python !== null;
  return stepFailed(step, text, isExplained ? explainInstallFailure(text, python) : undefined);
}

/** The environment of user code: what it may see of the server's, and what its API and its project set. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import type { WorkerSpec } from "../engine.ts";
import { activated } from "../environments/interpreter.ts";
import { withApiUrl } from "./api-url.ts";

/** Variables of the server that user code may see (docs/contract/predictor.md#environment-of-user-code). */
const PASSED_ON =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|LD_LIBRARY_PATH|CUDA_\w+|NVIDIA_\w+|(https?|no|all|ftp)_proxy|AWS_\w+|GOOGLE_\w+|AZURE_\w+|CLOUDSDK_\w+)$/i;

export function userEnvironment(spec: WorkerSpec, serverEnv: NodeJS.ProcessEnv): Record<string, string> {
  const roots = [
    spec.project,
    ...(spec.python_path === undefined ? [] : [join(spec.project, spec.python_path)]),
  ];
  const own = { PYTHONPATH: roots.join(":"), PYTHONUNBUFFERED: "1" };
  const all = { ...passedOn(serverEnv), ...spec.env, ...dotEnvOf(spec.project), ...own };
  // This wins even over a PATH that the user set: `python` is the interpreter that runs the predictor.
  const env = withApiUrl(activated(all, spec.interpreter), spec.apiUrl);
  return spec.visibleGpus === undefined ? env : { ...env, CUDA_VISIBLE_DEVICES: spec.visibleGpus.join(",") };
}

function passedOn(serverEnv: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(serverEnv))
    if (value !== undefined && PASSED_ON.test(name)) env[name] = value;
  return env;
}

function dotEnvOf(project: string): Record<string, string> {
  const file = join(project, ".env");
  return existsSync(file) ? (parseEnv(readFileSync(file, "utf8")) as Record<string, string>) : {};
}

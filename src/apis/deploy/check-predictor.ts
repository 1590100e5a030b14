/** Finds the errors of a predictor that only the project's files show: missing files, and a class that is not valid. */
import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { relative, resolve } from "node:path";
import { promisify } from "node:util";
import { FORMER_GUIDE } from "../../contracts/config/former-keys.ts";
import { type FieldError, ServiceError } from "../../contracts/errors.ts";
import type { Pythons } from "../../engine/environments/pythons.ts";
import { notSource } from "../config/former-files.ts";
import type { DeployableConfig, ParsedApi } from "../config/parse-config.ts";
import { choosePython } from "../config/predictor-python.ts";

const run = promisify(execFile);

export interface PredictorCheckOptions {
  /** The interpreter and the directory of the package `quern_runtime`, with which the class is checked. */
  python: string;
  pythonRuntime: string;
  /** The Pythons that `predictor.python` may name. */
  pythons: Pythons;
}

interface ClassFault {
  line: number;
  message: string;
  /** The error is about a name of Cortex. */
  former?: boolean;
}

type Detail = Pick<FieldError, "detail" | "guide">;

/** The checks of one deployment. Many APIs may use the same file, and each check starts a Python. */
export class PredictorChecks {
  private readonly options: PredictorCheckOptions;
  /** By interpreter and file. */
  private readonly classes = new Map<string, Promise<ClassFault[]>>();

  constructor(options: PredictorCheckOptions) {
    this.options = options;
  }

  async errorsOf(
    { positionOf }: ParsedApi,
    config: DeployableConfig,
    directory: string,
  ): Promise<FieldError[]> {
    const { path, python_path, python: version } = config.predictor;
    const error = (field: string, { detail, ...guide }: Detail) => ({
      pointer: positionOf(["predictor", field]),
      detail: `${config.name}: predictor.${field}: ${detail}`,
      ...guide,
    });
    const chosen = await choosePython(this.options.pythons, this.options.python, version);
    const errors = "detail" in chosen ? [error("python", chosen)] : [];
    if (python_path !== undefined && !isDirectoryInside(directory, python_path))
      errors.push(error("python_path", { detail: `"${python_path}" is not a directory of the project` }));
    const refused = refusalOf(directory, path);
    if (refused !== undefined) return [error("path", refused), ...errors];
    const python = "detail" in chosen ? this.options.python : chosen.python;
    const faults = await this.faultsOf(python, resolve(directory, path));
    return [...errors, ...faults.map((fault) => toError(config, fault))];
  }

  private faultsOf(python: string, file: string): Promise<ClassFault[]> {
    const key = `${python}\0${file}`;
    const faults = this.classes.get(key) ?? checkClass(python, this.options.pythonRuntime, file);
    this.classes.set(key, faults);
    return faults;
  }
}

/** Says why a path does not name a Python source file of the project; undefined if it may do so. */
function refusalOf(directory: string, path: string): Detail | undefined {
  const file = resolve(directory, path);
  if (relative(directory, file).startsWith("..")) return { detail: `"${path}" is outside the project` };
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true) {
    const what = found === undefined ? "file does not exist in the project" : "is not a file";
    return { detail: `${path}: ${what} (is it in .quernignore?)` };
  }
  const detail = notSource(file, path);
  return detail === undefined ? undefined : { detail, guide: FORMER_GUIDE };
}

function isDirectoryInside(directory: string, path: string): boolean {
  const full = resolve(directory, path);
  return !relative(directory, full).startsWith("..") && existsSync(full) && statSync(full).isDirectory();
}

function toError({ name, predictor }: DeployableConfig, { line, message, former }: ClassFault): FieldError {
  return {
    pointer: `${predictor.path}:${line}`,
    detail: `${name}: ${message}`,
    ...(former === true ? { guide: FORMER_GUIDE } : {}),
  };
}

async function checkClass(python: string, pythonRuntime: string, file: string): Promise<ClassFault[]> {
  try {
    const { stdout } = await run(python, ["-S", "-E", "-m", "quern_runtime.check_predictor", file], {
      cwd: pythonRuntime,
    });
    return JSON.parse(stdout) as ClassFault[];
  } catch (error) {
    throw new ServiceError(
      "internal_error",
      `the predictor could not be checked with ${python}: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

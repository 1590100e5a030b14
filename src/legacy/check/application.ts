/** The entry point of this folder: reads an application's directory and returns its resources, or all errors. */
import { existsSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { FieldError } from "../../contracts/errors.ts";
import { checkApp } from "./check-app.ts";
import { type Application, isApplication, loadApp } from "./load-app.ts";

/** Undefined if the text is not an `app.yaml`. */
export function checkApplication(
  appText: string,
  appFile: string,
  directory: string,
): Application | { errors: FieldError[] } | undefined {
  if (!isApplication(appText)) return undefined;
  const loaded = loadApp(appText, appFile, directory);
  if ("errors" in loaded) return loaded;
  const hasFile = (path: string) =>
    !relative(directory, resolve(directory, path)).startsWith("..") && existsSync(join(directory, path));
  return checkApp(loaded.resources, hasFile);
}

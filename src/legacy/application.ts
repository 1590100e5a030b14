/** The room's door: an application's directory into its resources, or all that is wrong with it. */
import { existsSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { FieldError } from "../contracts/errors.ts";
import { checkApp } from "./check-app.ts";
import { type Application, isApplication, loadApp } from "./load-app.ts";

/** Undefined where the text is no `app.yaml`. */
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

/** Chooses the Python that checks a predictor's class: the one of `predictor.python`, which must be installed. */
import { EnvironmentError } from "../../engine/environments/environment-error.ts";
import type { Pythons } from "../../engine/environments/pythons.ts";

/** The command, or the reason why the requested Python cannot be used. */
export type ChosenPython = { python: string } | { detail: string };

export async function choosePython(
  pythons: Pythons,
  own: string,
  version: string | undefined,
): Promise<ChosenPython> {
  if (version === undefined) return { python: own };
  try {
    return { python: (await pythons.require(version)).executable };
  } catch (error) {
    if (error instanceof EnvironmentError) return { detail: error.message };
    throw error;
  }
}

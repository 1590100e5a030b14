/** Which Python the class of a predictor is checked with: that of `predictor.python`, which must be there. */
import { EnvironmentError } from "../engine/installers.ts";
import type { Pythons } from "../engine/pythons.ts";

/** The command, or what is wrong with what was asked for. */
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

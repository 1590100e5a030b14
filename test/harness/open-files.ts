/** Descriptors without a limit, as where the system does not say it. */
import { OpenFiles } from "../../src/engine/open-files.ts";

export const MANY_FILES = new OpenFiles({ max: Number.POSITIVE_INFINITY, count: () => 0 });

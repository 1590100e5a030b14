/** The columns of histograms in series_requests: one for each bucket of DURATION_BOUNDS_S. */
import { DURATION_BOUNDS_S } from "../contracts/reports.ts";

const COUNT = DURATION_BOUNDS_S.length + 1;
const columns = (letter: string) => Array.from({ length: COUNT }, (_, at) => `${letter}${at}`);
export const DURATION_COLUMNS = columns("d");
export const WAIT_COLUMNS = columns("w");

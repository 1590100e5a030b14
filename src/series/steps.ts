/** Pure: the steps of a series, and what a request for one asks for. */
import { quotedBeginning } from "../base/printable.ts";
import { parseDurationMs } from "../contracts/config/durations.ts";
import { ServiceError } from "../contracts/errors.ts";
import { SERIES_STEPS_S } from "../contracts/http/series-operations.ts";
import { DURATION_PATTERN } from "../contracts/keys.ts";
import {
  HOURS_KEPT_S,
  MINUTES_KEPT_S,
  SERIES_POINTS_DEFAULT,
  SERIES_POINTS_MAX,
} from "../contracts/limits/database.ts";

export const MINUTE_S = 60;
export const HOUR_S = 3_600;
const RANGE_DEFAULT_S = HOUR_S;
const MOMENT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)|\d{1,11}(\.\d{1,9})?)$/;

/** The start of the minute. */
export function minuteOf(nowS: number): number {
  return startOf(nowS, MINUTE_S);
}

export function startOf(timeS: number, stepS: number): number {
  return Math.floor(timeS / stepS) * stepS;
}

/** From here on there are minutes. What was before is there by the hour, or soon will be. */
export function minutesFrom(nowS: number): number {
  return startOf(nowS - MINUTES_KEPT_S, HOUR_S);
}

/** The first time of which steps of this length are kept. */
export function keptFrom(stepS: number, nowS: number): number {
  return stepS < HOUR_S ? minutesFrom(nowS) : startOf(nowS - HOURS_KEPT_S, HOUR_S);
}

/** Steps from `startS` to before `endS`, which is the end of the last one. */
export interface Window {
  startS: number;
  endS: number;
  stepS: number;
}

/** What a request gives as text. */
export interface WindowQuery {
  from?: string | undefined;
  to?: string | undefined;
  step?: string | undefined;
}

/** The window of a request. Throws `invalid_request`. */
export function windowOf(query: WindowQuery, nowS: number): Window {
  const toS = query.to === undefined ? nowS : moment("to", query.to, nowS);
  const fromS = query.from === undefined ? toS - RANGE_DEFAULT_S : moment("from", query.from, nowS);
  if (fromS >= toS)
    throw invalid(`from must be before to (from is ${shown(fromS)}, and to is ${shown(toS)})`);
  const stepS = query.step === undefined ? fittingStep(fromS, toS, nowS) : stepOf(query.step);
  const window = alignedWindow(fromS, toS, stepS);
  const points = pointsOf(window);
  if (points > SERIES_POINTS_MAX) throw invalid(tooMany(points, fromS, toS));
  return window;
}

/** The starts of its steps. */
export function timesOf({ startS, endS, stepS }: Window): number[] {
  return Array.from({ length: (endS - startS) / stepS }, (_, at) => startS + at * stepS);
}

function alignedWindow(fromS: number, toS: number, stepS: number): Window {
  return { startS: startOf(fromS, stepS), endS: Math.ceil(toS / stepS) * stepS, stepS };
}

function pointsOf({ startS, endS, stepS }: Window): number {
  return (endS - startS) / stepS;
}

/** The shortest step with few enough points. Before the first minute that is kept, there are hours only. */
function fittingStep(fromS: number, toS: number, nowS: number): number {
  const leastS = fromS < minutesFrom(nowS) ? HOUR_S : MINUTE_S;
  const fits = (stepS: number) =>
    stepS >= leastS && pointsOf(alignedWindow(fromS, toS, stepS)) <= SERIES_POINTS_DEFAULT;
  return SERIES_STEPS_S.find(fits) ?? SERIES_STEPS_S.at(-1)!;
}

function tooMany(points: number, fromS: number, toS: number): string {
  const fits = (stepS: number) => pointsOf(alignedWindow(fromS, toS, stepS)) <= SERIES_POINTS_MAX;
  const least = SERIES_STEPS_S.find(fits);
  const cure =
    least === undefined ? "ask for a shorter range" : `use a step of at least ${least}, or a shorter range`;
  return `the range has ${points} steps, and at most ${SERIES_POINTS_MAX} are allowed: ${cure}`;
}

function stepOf(text: string): number {
  const step = SERIES_STEPS_S.find((one) => String(one) === text);
  if (step !== undefined) return step;
  throw invalid(`step must be one of ${SERIES_STEPS_S.join(", ")} seconds (got ${quotedBeginning(text)})`);
}

/** Unix seconds. A duration is so long before now. Throws `invalid_request`. */
export function moment(name: string, text: string, nowS: number): number {
  if (DURATION_PATTERN.test(text)) return nowS - parseDurationMs(text)! / 1000;
  const seconds = /^[\d.]+$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  if (MOMENT.test(text) && Number.isFinite(seconds)) return seconds;
  throw invalid(
    `${name} must be a timestamp such as 2026-11-24T08:00:00Z, Unix seconds, or a duration before now such as 24h (got ${quotedBeginning(text)})`,
  );
}

function shown(timeS: number): string {
  return new Date(timeS * 1000).toISOString();
}

function invalid(message: string): ServiceError {
  return new ServiceError("invalid_request", message);
}

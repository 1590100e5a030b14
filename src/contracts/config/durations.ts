/** Durations in Go's style, such as `500ms` and `1m30s`. */

const DURATION_UNITS_MS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/**
 * Converts to whole milliseconds, the unit of all other code. A duration above 0 becomes at least 1. Undefined if the
 * text is no duration.
 */
export function parseDurationMs(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * DURATION_UNITS_MS[unit!]!;
  }
  const whole = total > 0 ? Math.max(1, Math.round(total)) : 0;
  return Number.isSafeInteger(whole) ? whole : undefined;
}

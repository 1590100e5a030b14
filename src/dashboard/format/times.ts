/** Times and durations as people read them. Pure. */

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

/** To make one takes about as long as to format a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>();

function format(date: Date, options: Intl.DateTimeFormatOptions): string {
  const key = JSON.stringify(options);
  const known = formats.get(key) ?? new Intl.DateTimeFormat(undefined, { ...options, hourCycle: "h23" });
  formats.set(key, known);
  return known.format(date);
}

const DAY = { day: "numeric", month: "short" } as const;
const TO_MINUTES = { hour: "2-digit", minute: "2-digit" } as const;
const TO_SECONDS = { ...TO_MINUTES, second: "2-digit" } as const;

/** Local time of the day: `14:05`. */
export function localMinute(time: number): string {
  return format(new Date(time), TO_MINUTES);
}

/** `24 Nov`. */
export function localDay(time: number): string {
  return format(new Date(time), DAY);
}

/** Local date and time: `24 Nov, 08:15:03`. The year only if it is another one. */
export function localTime(time: string, nowMs: number): string {
  const date = new Date(time);
  const isThisYear = date.getFullYear() === new Date(nowMs).getFullYear();
  return format(date, {
    ...DAY,
    ...(isThisYear ? {} : { year: "numeric" }),
    ...TO_SECONDS,
  });
}

/** The same time in UTC to the second, for the hover: `2026-11-24 07:15:03 UTC`. */
export function utcTime(time: string): string {
  return `${time.slice(0, 19).replace("T", " ")} UTC`;
}

/** A duration in seconds with two units at most: `0 s`, `350 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(seconds: number): string {
  if (seconds === 0) return "0 s";
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < MINUTE_S) return `${whole} s`;
  if (whole < HOUR_S) return two(whole, MINUTE_S, "min", 1, "s");
  if (whole < DAY_S) return two(whole, HOUR_S, "h", MINUTE_S, "min");
  return two(whole, DAY_S, "d", HOUR_S, "h");
}

function two(seconds: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((seconds % large) / small);
  const first = `${Math.floor(seconds / large)} ${largeUnit}`;
  return rest === 0 ? first : `${first} ${rest} ${smallUnit}`;
}

/** How long ago: `just now`, `40 s ago`, `3 h ago`. */
export function ago(time: string, nowMs: number): string {
  const seconds = Math.max(0, (nowMs - Date.parse(time)) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < MINUTE_S) return `${Math.floor(seconds)} s ago`;
  if (seconds < HOUR_S) return `${Math.floor(seconds / MINUTE_S)} min ago`;
  if (seconds < DAY_S) return `${Math.floor(seconds / HOUR_S)} h ago`;
  return `${Math.floor(seconds / DAY_S)} d ago`;
}

/** Seconds between two times. */
export function secondsBetween(from: string, to: string | number): number {
  return ((typeof to === "number" ? to : Date.parse(to)) - Date.parse(from)) / 1000;
}

const UTC_MINUTE = /\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z/g;

/** The times of UTC in a sentence of the server, in local time: `14:05`, and with the day if it is another one. */
export function localMinutes(text: string, nowMs: number): string {
  return text.replace(UTC_MINUTE, (time, seconds?: string) => {
    const date = new Date(time);
    const parts = seconds === undefined ? TO_MINUTES : TO_SECONDS;
    const isToday = date.toDateString() === new Date(nowMs).toDateString();
    return format(date, isToday ? parts : { ...DAY, ...parts });
  });
}

/** `2026-11-28T14:05Z`, as the server takes it. */
export function utcMinute(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 16)}Z`;
}

/** `2026-11-28T15:05` in local time, as a field for times takes it. */
export function localInput(timeMs: number): string {
  const offsetMs = new Date(timeMs).getTimezoneOffset() * MINUTE_S * 1000;
  return new Date(timeMs - offsetMs).toISOString().slice(0, 16);
}

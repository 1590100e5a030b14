/** Times that people type and read are local; the server's are UTC. Pure. */

const UTC_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?Z/g;
const AT_MINUTE = /((?:^| )--at )(\d{4}-\d\d-\d\dT\d\d:\d\dZ)(?= |$)/g;
const CLOCK = /^(\d{1,2}):(\d\d)(?::(\d\d))?$/;
const LOCAL = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)$/;
const DAY_MS = 86_400_000;

/**
 * `14:05` is the last time that the clock said so, and `2026-11-27 14:05` is local too. Everything else stays as it is:
 * the server knows more forms.
 */
export function asUtc(text: string, nowMs: number): string {
  const clock = CLOCK.exec(text);
  if (clock !== null) {
    const at = new Date(nowMs);
    at.setHours(Number(clock[1]), Number(clock[2]), Number(clock[3] ?? 0), 0);
    if (Number(clock[1]) > 23 || Number(clock[2]) > 59) return text;
    if (at.getTime() > nowMs) at.setTime(yesterday(at));
    return at.toISOString();
  }
  const local = LOCAL.exec(text);
  const time = local === null ? Number.NaN : Date.parse(`${local[1]}T${local[2]}`);
  return Number.isNaN(time) ? text : new Date(time).toISOString();
}

/** The same time of the clock, also if one of the days has 23 or 25 hours. */
function yesterday(at: Date): number {
  const before = new Date(at.getTime());
  before.setDate(at.getDate() - 1);
  return before.getTime();
}

/** The times of UTC in a text, as the local clock said them: `14:05`, and with the date if it was not today. */
export function inLocalTime(text: string, nowMs: number): string {
  return text.replace(UTC_TIME, (time) => localClock(time, nowMs));
}

/** The same in a command, where a date needs quotes. Other arguments, such as an error's text, stay as they are. */
export function inLocalCommand(text: string, nowMs: number): string {
  return text.replace(AT_MINUTE, (_, option: string, time: string) => {
    const local = localClock(time, nowMs);
    return option + (local.includes(" ") ? `"${local}"` : local);
  });
}

function localClock(time: string, nowMs: number): string {
  const date = new Date(time);
  const two = (number: number) => String(number).padStart(2, "0");
  const hasSeconds = time.split(":").length === 3;
  const clock = [date.getHours(), date.getMinutes(), ...(hasSeconds ? [date.getSeconds()] : [])]
    .map(two)
    .join(":");
  const isToday =
    date.toDateString() === new Date(nowMs).toDateString() && Math.abs(nowMs - date.getTime()) < DAY_MS;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return isToday ? clock : `${day} ${clock}`;
}

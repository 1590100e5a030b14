/** Numbers in words, as findings show them. Pure. */

const MIB = 1024 * 1024;

/** CPUs, bytes and GPUs of one worker, of a replica, or of the machine. */
export interface Amount {
  cpus: number;
  memoryBytes: number;
  gpus: number;
}

/** `12 ms`, `3.4 s`, `5m 3s`, `2h 10m`. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
}

/** `80 %`. Never 100 % for a part, and never 0 % for something. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "0 %";
  const exact = (100 * part) / whole;
  if (exact > 99 && part < whole) return "99 %";
  return exact > 0 && exact < 1 ? "< 1 %" : `${Math.round(exact)} %`;
}

/** `1 replica`, `2 replicas`, `2 batches`. */
export function count(number: number, what: string): string {
  const plural = /(ch|sh|s|x)$/.test(what) ? `${what}es` : `${what}s`;
  return `${number.toLocaleString("en")} ${number === 1 ? what : plural}`;
}

export function size(bytes: number): string {
  if (bytes >= 1024 * MIB) return `${Number((bytes / (1024 * MIB)).toFixed(1))} GiB`;
  return bytes >= MIB ? `${Math.round(bytes / MIB)} MiB` : `${Math.ceil(bytes / 1024)} KiB`;
}

/** A rate of bytes: `3 MB/s`. */
export function bytesPerSecond(bytes: number, seconds: number): string {
  const rate = seconds > 0 ? bytes / seconds : 0;
  if (rate >= 1e6) return `${Number((rate / 1e6).toFixed(1))} MB/s`;
  return `${Number((rate / 1e3).toFixed(1))} kB/s`;
}

/** `2 CPU, 512 MiB and 1 GPU`, without what is zero. */
export function amount({ cpus, memoryBytes, gpus }: Amount): string {
  const parts = [
    ...(cpus > 0 ? [`${Number(Math.max(0, cpus).toFixed(3))} CPU`] : []),
    ...(memoryBytes > 0 ? [size(memoryBytes)] : []),
    ...(gpus > 0 ? [`${gpus} GPU`] : []),
  ];
  if (parts.length === 0) return "nothing";
  return parts.length === 1 ? parts[0]! : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

/** In one line, at most so long. */
export function short(text: string, most = 200): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

/** Digits of a version's id. */
const ID_SHOWN = 13;

/** Which version took the place of which: the pages read it to show these two (dashboard/parts/place-of.ts). */
export function replaced(version: string, former: string): string {
  return `version ${short(version, ID_SHOWN)} replaced ${short(former, ID_SHOWN)}`;
}

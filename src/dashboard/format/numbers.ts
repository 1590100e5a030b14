/** Numbers as people read them. Pure. */

/** A whole number with separators: `1,204,311`. Larger ones than 2^53 come as text, and stay as they are. */
export function whole(value: number | string): string {
  // Without Intl: its first formatter takes a browser 10 ms, before the first numbers are there.
  return typeof value === "string" ? value : String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A short count for plots and tiles: `950`, `12.4k`, `3.1M`. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size < 1000)
    return size < 10 && !Number.isInteger(value) ? value.toFixed(1) : String(Math.round(value));
  if (size < 999_500) return `${trimmed(value / 1000)}k`;
  return size < 999_500_000 ? `${trimmed(value / 1e6)}M` : `${trimmed(value / 1e9)}G`;
}

/** A number per second: `0`, `0.03`, `2.5`, `140`. */
export function rate(value: number): string {
  if (value === 0) return "0";
  if (value < 0.01) return "<0.01";
  if (value < 1) return value.toFixed(2);
  return value < 10 ? value.toFixed(1) : short(value);
}

/** A share of 1 as percent: `0 %`, `<0.1 %`, `99.9 %`, `100 %`. Only all is 100, and only none is 0. */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0 || value === 100) return `${value} %`;
  if (value < 0.1) return "<0.1 %";
  if (value > 99.9) return ">99.9 %";
  return `${value < 10 ? value.toFixed(1) : Math.floor(value)} %`;
}

/** Bytes by powers of 1024: `512 B`, `1.5 MiB`. */
export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(value) / 10));
  return `${trimmed(value / 1024 ** power)} ${units[power - 1]}`;
}

function trimmed(value: number): string {
  return Math.abs(value) < 99.5 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value));
}

/** `1 batch`, `2 batches`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** Pure: values as a line of block characters. */

const BLOCKS = "▁▂▃▄▅▆▇█";

/**
 * The highest of `values` in each of at most `width` columns, from 0 to the highest of all. A column without any is a
 * space.
 */
export function plot(values: readonly (number | null)[], width: number): string {
  const columns = Math.min(width, values.length);
  const highest = largest(values);
  if (highest === null) return "";
  return Array.from({ length: columns }, (_, at) => {
    const from = Math.floor((at * values.length) / columns);
    const to = Math.floor(((at + 1) * values.length) / columns);
    const value = largest(values.slice(from, to));
    if (value === null) return " ";
    const share = highest === 0 ? 0 : value / highest;
    return BLOCKS[Math.min(BLOCKS.length - 1, Math.floor(share * BLOCKS.length))]!;
  }).join("");
}

export function largest(values: readonly (number | null)[]): number | null {
  return values.reduce(
    (most, value) => (most === null || (value !== null && value > most) ? value : most),
    null,
  );
}

export function smallest(values: readonly (number | null)[]): number | null {
  return values.reduce(
    (least, value) => (least === null || (value !== null && value < least) ? value : least),
    null,
  );
}

/** Quantities as Kubernetes writes them: `500m` of a CPU, `100M` or `1Gi` of memory. */

const BYTES: Record<string, number> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** Converts to thousandths of a CPU; undefined if the text is no quantity of CPUs. */
export function parseCpuMillis(text: string): number | undefined {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(m?)$/.exec(text) ?? [];
  if (amount === undefined) return undefined;
  return Math.round(unit === "m" ? Number(amount) : Number(amount) * 1000);
}

/** Converts to bytes; undefined if the text is no size. */
export function parseBytes(text: string): number | undefined {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(k|M|G|T|Ki|Mi|Gi|Ti|)$/.exec(text) ?? [];
  return amount === undefined ? undefined : Math.round(Number(amount) * BYTES[unit!]!);
}

/** Prometheus' text format (version 0.0.4): writes families of samples as text. */

export interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram" | "summary";
  samples: Sample[];
}

export interface Sample {
  /** The ending after the family's name: `_bucket`, `_sum`, `_count`. */
  suffix?: string;
  labels: Record<string, string>;
  value: number;
}

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export function exposition(families: readonly Family[]): string {
  return families
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(
        ({ suffix, labels, value }) => `${name}${suffix ?? ""}${labelText(labels)} ${numberText(value)}`,
      );
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join("\n");
    })
    .map((text) => `${text}\n`)
    .join("");
}

/** The samples of one histogram: cumulative buckets, sum, count. `buckets` has one more than `bounds`. */
export function histogramSamples(
  labels: Record<string, string>,
  bounds: readonly number[],
  buckets: readonly number[],
  sum: number,
): Sample[] {
  let count = 0;
  const cumulative = buckets.map((bucket, at) => {
    count += bucket;
    const le = at < bounds.length ? String(bounds[at]) : "+Inf";
    return { suffix: "_bucket", labels: { ...labels, le }, value: count };
  });
  return [...cumulative, { suffix: "_sum", labels, value: sum }, { suffix: "_count", labels, value: count }];
}

function labelText(labels: Record<string, string>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";
}

/** A small line of recent numbers, without axes. */
import { whole } from "../format/numbers.ts";

const WIDTH = 120;
const HEIGHT = 24;

/** `minutes`: the last of them is not over. With less than a whole minute in it, it would look like an outage. */
export function Spark({ minutes, label }: { minutes: readonly number[]; label: string }) {
  const over = minutes.slice(0, -1);
  const values = over.some((value) => value > 0) ? over : minutes;
  const most = Math.max(1, ...values);
  const at = (value: number, index: number) => {
    const x = values.length < 2 ? 0 : (index / (values.length - 1)) * WIDTH;
    return `${x.toFixed(1)},${(HEIGHT - 2 - (value / most) * (HEIGHT - 4)).toFixed(1)}`;
  };
  const line = values.map(at).join(" ");
  const sum = values.reduce((all, value) => all + value, 0);
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${whole(sum)}`}
    >
      <title>{`${label}: ${whole(sum)}, at most ${whole(Math.max(0, ...values))} in one`}</title>
      {sum > 0 && <polygon points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />}
      <polyline points={line} />
    </svg>
  );
}

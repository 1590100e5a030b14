/** What a monitored API predicted in two weeks: classes by number, or the range of numbers. */
import { percent, whole } from "../../format/numbers.ts";
import { Facts, Section } from "../../parts/facts.tsx";
import type { DescribedApi } from "../../shapes.ts";

type Metrics = NonNullable<DescribedApi["metrics"]>;

export function Classes({ metrics: { classes, values } }: { metrics: Metrics }) {
  const all = (classes ?? []).reduce((sum, { count }) => sum + count, 0);
  return (
    <>
      {classes && all > 0 && (
        <Section title="Predicted classes">
          <table class="bars">
            <thead>
              <tr>
                <th>Class</th>
                <th class="number">Predictions</th>
                <th class="number">Share</th>
                <th>
                  <span class="hidden">Share as a bar</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {classes.map(({ name, count }) => (
                <tr key={name}>
                  <td>{name}</td>
                  <td class="number">{whole(count)}</td>
                  <td class="number">{percent(count / all)}</td>
                  <td>
                    <svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                      <rect class="busy" width={(count / all) * 100} height="6" />
                    </svg>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Section>
      )}
      {values && (
        <Section title="Predicted numbers">
          <Facts
            rows={[
              ["Predictions", whole(values.count)],
              ["Average", String(values.avg)],
              ["Smallest", String(values.min)],
              ["Largest", String(values.max)],
            ]}
          />
        </Section>
      )}
    </>
  );
}

/** The replicas of a real-time API. */
import { Section } from "../../parts/facts.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { Status } from "../../parts/status.tsx";
import type { DescribedApi } from "../../shapes.ts";

export function Replicas({ replicas }: { replicas: DescribedApi["replicas"] }) {
  if (replicas.length === 0) return null;
  return (
    <Section title="Replicas">
      <Scroll label="replicas">
        <table>
          <thead>
            <tr>
              <th>Worker</th>
              <th>State</th>
              <th>Version</th>
              <th class="number">Process</th>
            </tr>
          </thead>
          <tbody>
            {replicas.map(({ worker_id, state, is_up_to_date, pid }) => (
              <tr key={worker_id}>
                <td class="mono">{worker_id}</td>
                <td>
                  <Status of={state} />
                </td>
                <td>{is_up_to_date ? "current" : "former"}</td>
                <td class="number">{pid}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  );
}

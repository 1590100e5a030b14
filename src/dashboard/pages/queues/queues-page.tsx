/** Dead letter queues, and the messages of one. */
import { whole } from "../../format/numbers.ts";
import { PageHead } from "../../parts/facts.tsx";
import { Link } from "../../parts/link.tsx";
import { More, usePages } from "../../parts/more.tsx";
import { Empty, ErrorNote, Loading } from "../../parts/notes.tsx";
import { Time } from "../../parts/time.tsx";
import type { QueueList } from "../../shapes.ts";

export function QueuesPage() {
  const pages = usePages<QueueList>("/-/queues?limit=100");
  const queues = pages.pages.flatMap((page) => page.queues);
  return (
    <>
      <PageHead title="Dead letter queues" />
      {pages.error && <ErrorNote error={pages.error} again={pages.again} />}
      {pages.pages.length === 0 && pages.isLoading && <Loading />}
      {pages.pages.length > 0 && queues.length === 0 && (
        <Empty title="No dead letter queue is in use">
          A job that names <code>queue_dead_letter_queue</code> sends the batches there that fail for good.
        </Empty>
      )}
      {queues.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>Queue</th>
              <th class="number">Messages</th>
              <th>Oldest</th>
            </tr>
          </thead>
          <tbody>
            {queues.map(({ name, messages, oldest_sent_time }) => (
              <tr key={name}>
                <td>
                  <Link to={["queues", name]}>{name}</Link>
                </td>
                <td class="number">{whole(messages)}</td>
                <td>
                  <Time at={oldest_sent_time} isAgo />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <More of={pages} />
    </>
  );
}

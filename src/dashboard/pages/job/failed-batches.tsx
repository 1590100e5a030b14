/** Failed batches of one error, with their items. */
import { counted, whole } from "../../format/numbers.ts";
import { Json } from "../../parts/json-view.tsx";
import { More, usePages } from "../../parts/more.tsx";
import { ErrorNote, Loading } from "../../parts/notes.tsx";
import { withQuery } from "../../server/request.ts";
import type { Failure, FailureList } from "../../shapes.ts";

const PAGE = 20;

/** `like`: those whose error differs from that of this batch in numbers only. */
export function FailedBatches({ path, like }: { path: string; like: number }) {
  const pages = usePages<FailureList>(withQuery(`${path}/failures`, { like, limit: PAGE }));
  const found = pages.pages.flatMap((page) => page.failures);
  return (
    <>
      {pages.error && <ErrorNote error={pages.error} />}
      {pages.pages.length === 0 && pages.isLoading && <Loading />}
      <ul class="batches">
        {found.map((failure) => (
          <FailedBatch key={`${failure.batch_id} ${failure.item_index}`} failure={failure} />
        ))}
      </ul>
      <More of={pages} />
    </>
  );
}

function FailedBatch({ failure }: { failure: Failure }) {
  const { batch_index, item_index, round, receive_count, source, error } = failure;
  const { payload, payload_error, letter_error } = failure;
  return (
    <li>
      <p>
        batch {whole(batch_index)}
        {item_index !== undefined && `, item ${whole(item_index)}`}
        <span class="quiet">
          {` after ${counted(receive_count, "attempt")}${round === 1 ? "" : ` in round ${round}`}`}
          {source && ` · ${source.path}${source.line ? `:${source.line}` : ""}`}
          {` · ${error.message}`}
        </span>
      </p>
      {payload ? (
        <Json value={payload} label={`items of batch ${batch_index}`} />
      ) : (
        <p class="quiet">{payload_error ?? "its items are not kept any more"}</p>
      )}
      {letter_error && <p class="small quiet">not in the dead letter queue: {letter_error}</p>}
    </li>
  );
}

/** The messages of a dead letter queue: search in payload and error, and run again or remove a selection. */
import { useState } from "preact/hooks";
import { address, setQuery } from "../../address/address.ts";
import { whole } from "../../format/numbers.ts";
import { PageHead } from "../../parts/facts.tsx";
import { Search } from "../../parts/filters.tsx";
import { Folded } from "../../parts/json-view.tsx";
import { JobLink, Link } from "../../parts/link.tsx";
import { More, usePages } from "../../parts/more.tsx";
import { Empty, ErrorNote, Loading } from "../../parts/notes.tsx";
import { Time } from "../../parts/time.tsx";
import { segment, withQuery } from "../../server/request.ts";
import { mayAct } from "../../session/session.ts";
import type { Letter, LetterList } from "../../shapes.ts";
import { letterError } from "./letter-error.ts";
import { MessageActions } from "./message-actions.tsx";

export function QueuePage({ name }: { name: string }) {
  const search = address.value.query.get("search") ?? "";
  const pages = usePages<LetterList>(withQuery(`/-/queues/${segment(name)}/messages`, { search, limit: 50 }));
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const letters = pages.pages.flatMap((page) => page.messages);
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    choose(next);
  };
  const after = () => {
    choose(new Set());
    pages.again();
  };
  return (
    <>
      <PageHead above={<Link to={["queues"]}>Queues</Link>} title={name} />
      <div class="filters">
        <Search
          label="Text in payload or error"
          value={search}
          onChange={(text) => setQuery({ search: text })}
        />
        <span class="quiet">{whole(letters.length)} shown</span>
      </div>
      {letters.length > 0 && <MessageActions queue={name} search={search} chosen={chosen} after={after} />}
      {pages.error && <ErrorNote error={pages.error} again={pages.again} />}
      {pages.pages.length === 0 && pages.isLoading && <Loading lines={5} />}
      {pages.pages.length > 0 && letters.length === 0 && (
        <Empty
          title={
            search === "" ? "The queue is empty" : "No message among those that were searched has this text"
          }
        />
      )}
      <ul class="letters">
        {letters.map((letter) => (
          <Message
            key={letter.message_id}
            letter={letter}
            isChosen={chosen.has(letter.message_id)}
            toggle={() => toggle(letter.message_id)}
          />
        ))}
      </ul>
      <More of={pages} />
    </>
  );
}

interface MessageProps {
  letter: Letter;
  isChosen: boolean;
  toggle: () => void;
}

function Message({ letter: { message_id, attributes, body, sent_time }, isChosen, toggle }: MessageProps) {
  const { api_name, job_id, error: _, ...others } = attributes;
  return (
    <li>
      <header>
        {mayAct.value && (
          <input
            type="checkbox"
            checked={isChosen}
            onChange={toggle}
            aria-label={`select message ${message_id}`}
          />
        )}
        <strong class="clip">{letterError(attributes) || "message"}</strong>
        {api_name && job_id && <JobLink api={api_name} job={job_id} />}
        <Time at={sent_time} isAgo />
      </header>
      <Folded text={body} label={`items of message ${message_id}`} />
      <p class="small quiet">
        {Object.entries({ message_id, ...others })
          .map(([key, value]) => `${key}: ${value.slice(0, 120)}`)
          .join(" · ")}
      </p>
    </li>
  );
}

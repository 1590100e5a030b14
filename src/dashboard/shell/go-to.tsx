/** Goes to an API, a job or a section by name: opened with `/` or Ctrl+K, as in many tools. */
import { useLayoutEffect, useState } from "preact/hooks";
import { Dialog } from "../actions/dialog.tsx";
import { open, pageUrl } from "../address/address.ts";
import { overview } from "../live/live.ts";

interface Place {
  label: string;
  about: string;
  segments: readonly string[];
}

const SECTIONS = ["overview", "apis", "jobs", "queues", "applications", "keys", "audit"];
const SHOWN = 8;

/** Whether a key press is for the page, and not for a field. */
function isShortcut(event: KeyboardEvent): boolean {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") return true;
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test((event.target as Element).tagName);
  return event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
}

export function GoTo() {
  const [isOpen, setOpen] = useState(false);
  // Before the button is painted: the key works as soon as it is seen.
  useLayoutEffect(() => {
    const heard = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener("keydown", heard);
    return () => removeEventListener("keydown", heard);
  }, []);
  return (
    <>
      <button type="button" class="plain small" onClick={() => setOpen(true)}>
        Go to… <kbd>/</kbd>
      </button>
      {isOpen && <Finder onClose={() => setOpen(false)} />}
    </>
  );
}

function Finder({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const found = placesFor(text.trim().toLowerCase());
  const go = ({ segments }: Place) => {
    onClose();
    open(pageUrl(segments));
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (found[0]) go(found[0]);
        }}
      >
        <label class="field">
          Name of an API, or id of a running job
          <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      </form>
      <ul class="places">
        {found.map((place) => (
          <li key={place.about + place.label}>
            <button type="button" class="plain" onClick={() => go(place)}>
              {place.label} <span class="quiet">{place.about}</span>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

/** Those whose name begins with the text come first. */
function placesFor(text: string): Place[] {
  const { apis = [], jobs = [] } = overview.value ?? {};
  const all: Place[] = [
    ...SECTIONS.map((label) => ({ label, about: "page", segments: label === "overview" ? [] : [label] })),
    ...apis.map(({ name }) => ({ label: name, about: "API", segments: ["apis", name] })),
    ...jobs.map(({ job_id, api_name }) => ({
      label: job_id,
      about: `job of ${api_name}`,
      segments: ["jobs", api_name, job_id],
    })),
  ];
  const matching = all.filter(({ label }) => label.toLowerCase().includes(text));
  const isFirst = ({ label }: Place) => label.toLowerCase().startsWith(text);
  const ordered = [...matching.filter(isFirst), ...matching.filter((place) => !isFirst(place))];
  return ordered.slice(0, SHOWN);
}

/** A look back: what differed at a time in the past, and what changed just before. The address has the time. */
import { useEffect, useRef } from "preact/hooks";
import { address, setQuery } from "../../address/address.ts";
import { nowMs } from "../../format/now.ts";
import { localInput, localMinutes, utcMinute } from "../../format/times.ts";
import { FindingList } from "../../parts/findings.tsx";
import { Loaded } from "../../parts/notes.tsx";
import { segment, withQuery } from "../../server/request.ts";
import { type Resource, useResource } from "../../server/use-resource.ts";
import type { Explanation } from "../../shapes.ts";

export interface Past {
  /** As the address has it: a minute of UTC. */
  at: string;
  explanation: Resource<Explanation>;
  /** What the plots mark, in Unix seconds: when it differed, or the minute. */
  span: { fromS: number; toS: number };
}

/** Undefined unless the address names a time. */
export function usePast(api: string): Past | undefined {
  const at = address.value.query.get("at") ?? undefined;
  const path = `/-/apis/${segment(api)}/explain`;
  const explanation = useResource<Explanation>(at === undefined ? undefined : withQuery(path, { at }));
  if (at === undefined) return undefined;
  const { from, to } = explanation.value?.past ?? {};
  const fromS = Date.parse(from ?? at) / 1000;
  return { at, explanation, span: { fromS, toS: to ? Date.parse(to) / 1000 : fromS } };
}

export function lookAt(timeMs: number): void {
  setQuery({ at: utcMinute(timeMs) });
}

/** Days that are kept. */
const KEPT_MS = 14 * 86_400_000;

export function PastField({ past }: { past: Past | undefined }) {
  const value = past === undefined ? "" : localInput(Date.parse(past.at));
  const change = (text: string) => {
    const timeMs = Date.parse(text);
    if (!Number.isNaN(timeMs)) lookAt(timeMs);
  };
  return (
    <label class="field">
      Explain a time
      <input
        type="datetime-local"
        value={value}
        min={localInput(nowMs() - KEPT_MS)}
        max={localInput(nowMs())}
        onChange={(event) => change(event.currentTarget.value)}
      />
    </label>
  );
}

export function PastFindings({ past: { at, explanation } }: { past: Past }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // The click may have been on a plot further down.
  useEffect(() => {
    heading.current?.scrollIntoView({ block: "start" });
    heading.current?.focus({ preventScroll: true });
  }, [at]);
  return (
    <div class="past">
      <header class="section-head">
        <h3 ref={heading} tabIndex={-1}>
          What was at {localMinutes(at, nowMs())}
        </h3>
        <button type="button" class="plain small" onClick={() => setQuery({ at: undefined })}>
          Close
        </button>
      </header>
      <Loaded resource={explanation} lines={4}>
        {(value) => <FindingList explanation={value} hasLead={false} />}
      </Loaded>
    </div>
  );
}

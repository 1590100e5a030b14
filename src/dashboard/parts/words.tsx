/** A sentence of the server. What stands between backticks is code. */

import { nowMs } from "../format/now.ts";
import { localMinutes } from "../format/times.ts";

/** With its times in local time. */
export function Said({ text }: { text: string }) {
  return <Words text={localMinutes(text, nowMs())} />;
}

export function Words({ text }: { text: string }) {
  const parts = text.split("`");
  // Without a partner, a backtick is only a character.
  if (parts.length % 2 === 0) return <>{text}</>;
  return <>{parts.map((part, at) => (at % 2 === 1 ? <code key={`${at} ${part}`}>{part}</code> : part))}</>;
}

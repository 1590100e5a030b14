/** A sentence of the server. What stands between backticks is code. */

export function Words({ text }: { text: string }) {
  const parts = text.split("`");
  // Without a partner, a backtick is only a character.
  if (parts.length % 2 === 0) return <>{text}</>;
  return <>{parts.map((part, at) => (at % 2 === 1 ? <code key={`${at} ${part}`}>{part}</code> : part))}</>;
}

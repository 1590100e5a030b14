/** Cuts text that anyone may send before it goes into a log, and says how long it was. */
export function cutText(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax)}… (${text.length} characters)`;
}

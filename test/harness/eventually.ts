/** Waits for a condition; the only way in which tests wait. */
const FIRST_MS = 10;
/** Later checks are less frequent, because each may be a request to a busy server. */
const LONGEST_MS = 80;

export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 60_000,
  detail: () => string = () => "",
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = FIRST_MS; performance.now() < deadline; pauseMs = Math.min(pauseMs * 1.2, LONGEST_MS)) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw new Error(`waited ${timeoutMs} ms in vain: ${what} ${detail()}`);
}

/** Waits for a condition; the only way in which tests wait. */
const FIRST_MS = 10;
/** Later checks are less frequent, because each may be a request to a busy server. */
const LONGEST_MS = 80;
/** By how much the limits are longer than usual: on a slow machine, such as a kernel in user mode. */
const PATIENCE = Number(process.env.QUERN_TEST_PATIENCE ?? 1);

export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 60_000,
  detail: () => string = () => "",
): Promise<void> {
  const longestMs = timeoutMs * PATIENCE;
  const deadline = performance.now() + longestMs;
  for (let pauseMs = FIRST_MS; performance.now() < deadline; pauseMs = Math.min(pauseMs * 1.2, LONGEST_MS)) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw new Error(`waited ${longestMs} ms in vain: ${what} ${detail()}`);
}

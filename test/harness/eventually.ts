/** Waits for a condition; the only way in which tests wait. */
const EVERY_MS = 15;

export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 60_000,
  detail: () => string = () => "",
): Promise<void> {
  for (
    const deadline = Date.now() + timeoutMs;
    Date.now() < deadline;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  ) {
    if (await condition()) return;
  }
  throw new Error(`waited ${timeoutMs} ms in vain: ${what} ${detail()}`);
}

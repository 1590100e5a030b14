/** How long turns of this process's event loop take, in CPU time: a busy machine does not change it. */

/** The longest turn during the work. */
export async function longestTurnCpuMs(work: () => Promise<void>): Promise<number> {
  let longestMs = 0;
  let isOver = false as boolean;
  let before = process.cpuUsage();
  const look = () => {
    const { user, system } = process.cpuUsage(before);
    longestMs = Math.max(longestMs, (user + system) / 1000);
    before = process.cpuUsage();
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work();
  isOver = true;
  await new Promise((resolve) => setImmediate(resolve));
  return longestMs;
}

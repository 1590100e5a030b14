/**
 * The interface of everything that has a lifetime. `start` may be called once. `stop` may be called any number of
 * times, also before `start`. It resolves when the work in hand is done.
 */
export interface Service {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts in order. If one fails, it and those before it are stopped in reverse, and the error is thrown. */
export async function startInOrder(services: readonly Service[]): Promise<void> {
  const started: Service[] = [];
  try {
    for (const service of services) {
      started.push(service);
      await service.start();
    }
  } catch (error) {
    await stopInReverse(started);
    throw error;
  }
}

export async function stopInReverse(services: readonly Service[]): Promise<void> {
  for (const service of [...services].reverse()) await service.stop();
}

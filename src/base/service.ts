/**
 * The one shape of everything that has a lifetime. `start` may be called once; `stop` any number of times, also before
 * `start`, and resolves when work in hand is done.
 */
export interface Service {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts in order; when one fails, those already started are stopped in reverse and the error goes on. */
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

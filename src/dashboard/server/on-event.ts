/** Handlers of events that wait for the server. Each shows its own failures; any other is a bug, which the browser logs. */
export function onEvent<E>(work: (event: E) => Promise<unknown>): (event: E) => void {
  return (event) => {
    work(event).catch(reportError);
  };
}

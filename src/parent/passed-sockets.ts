/**
 * Which listening sockets systemd has opened for the server: `LISTEN_FDS` of sd_listen_fds(3). They stay open
 * while the server restarts, so connections wait in the kernel instead of being refused. Pure.
 */

/** The variables that say so. They are meant for one process, so its children must not get them. */
export const LISTEN_VARIABLES = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "LISTEN_PIDFDID"] as const;

/** The first descriptor that is passed. */
const FIRST_FD = 3;
const CONTROL = "control";

export interface PassedFds {
  main: number | undefined;
  control: number | undefined;
}

export const NO_FDS: PassedFds = { main: undefined, control: undefined };

type ListenVariables = Partial<Record<(typeof LISTEN_VARIABLES)[number], string>>;

/**
 * The process for which the sockets are meant, if that is another one than `pid`: a shell that systemd started, and
 * that did not become the server.
 */
export function meantFor(variables: ListenVariables, pid: number): string | undefined {
  const { LISTEN_FDS, LISTEN_PID } = variables;
  return LISTEN_FDS === undefined || LISTEN_PID === String(pid) ? undefined : (LISTEN_PID ?? "no process");
}

/** The descriptors. One named `control` is for the control plane. Throws if a listener has more than one. */
export function passedFds(variables: ListenVariables, pid: number): PassedFds {
  const { LISTEN_FDS, LISTEN_FDNAMES = "" } = variables;
  if (LISTEN_FDS === undefined || meantFor(variables, pid) !== undefined) return NO_FDS;
  const count = Number(LISTEN_FDS);
  if (!Number.isSafeInteger(count) || count < 0)
    throw new Error(`LISTEN_FDS must be a number (got "${LISTEN_FDS}")`);
  const names = LISTEN_FDNAMES.split(":");
  // A listener has at most one, so more than three need no names.
  const all = Array.from({ length: Math.min(count, 3) }, (_, at) => ({ fd: FIRST_FD + at, name: names[at] }));
  const control = all.filter(({ name }) => name === CONTROL);
  const main = all.filter(({ name }) => name !== CONTROL);
  if (main.length > 1 || control.length > 1)
    throw new Error(
      `LISTEN_FDS passes ${count} sockets (LISTEN_FDNAMES="${LISTEN_FDNAMES}"); allowed are one for the main listener and one for the control plane. Write one ListenStream= into the socket unit. For --control-listen, add a second unit with FileDescriptorName=${CONTROL}`,
    );
  return { main: main[0]?.fd, control: control[0]?.fd };
}

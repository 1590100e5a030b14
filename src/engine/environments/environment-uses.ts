/**
 * Decides which Python environments may be removed. Pure. An environment has a file for each user that it was prepared
 * for. A user runs in its newest environment. An environment that nobody needs is kept for a while, because a rollback
 * or a redeployment may use it again.
 */

/** The user of an environment: a project, with the version of Python that its configuration names. */
export function environmentUser(projectId: string, python: string | undefined): string {
  return python === undefined ? projectId : `${projectId}@${python}`;
}

export interface EnvironmentState {
  id: string;
  /** When it was last known to be needed. */
  neededMs: number;
  /** By user, the time when it was last prepared for that user. */
  uses: ReadonlyMap<string, number>;
}

export interface EnvironmentNeeds {
  users: ReadonlySet<string>;
  /** Environments in which a worker runs now. */
  running: ReadonlySet<string>;
}

/** The environments that are needed now. */
export function neededEnvironments(
  environments: readonly EnvironmentState[],
  { users, running }: EnvironmentNeeds,
): Set<string> {
  const needed = new Set(running);
  for (const user of users) {
    const newest = newestOf(environments, user);
    if (newest !== undefined) needed.add(newest.id);
  }
  return needed;
}

/** The environments that nobody has needed for longer than `keepMs`. */
export function unneededEnvironments(
  environments: readonly EnvironmentState[],
  needed: ReadonlySet<string>,
  { nowMs, keepMs }: { nowMs: number; keepMs: number },
): string[] {
  return environments
    .filter(({ id, neededMs }) => !needed.has(id) && nowMs - neededMs > keepMs)
    .map(({ id }) => id);
}

/** Former users whose records can be removed. Each deployment of other files leaves one. */
export function formerUsers(
  uses: ReadonlyMap<string, number>,
  users: ReadonlySet<string>,
  beforeMs: number,
): string[] {
  return [...uses].filter(([user, ms]) => !users.has(user) && ms < beforeMs).map(([user]) => user);
}

function newestOf(environments: readonly EnvironmentState[], user: string): EnvironmentState | undefined {
  let newest: EnvironmentState | undefined;
  for (const one of environments)
    if (one.uses.has(user) && (newest === undefined || one.uses.get(user)! > newest.uses.get(user)!))
      newest = one;
  return newest;
}

/**
 * Which Python environments may go: pure. An environment has a file for each user that it was ever prepared for; the newest
 * environment of a user is the one that it runs in. One that nobody needs stays for a while: a rollback, or an API that comes
 * again, finds it there.
 */

/** Whoever has an environment: a project, with the version of Python that its configuration names. */
export function environmentUser(projectId: string, python: string | undefined): string {
  return python === undefined ? projectId : `${projectId}@${python}`;
}

export interface EnvironmentState {
  id: string;
  /** When it was last known to be needed. */
  neededMs: number;
  /** By user, when it was last prepared for that one. */
  uses: ReadonlyMap<string, number>;
}

export interface EnvironmentNeeds {
  users: ReadonlySet<string>;
  /** Environments in which a worker runs at this moment. */
  running: ReadonlySet<string>;
}

/** Those that are needed now. */
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

/** Those that nobody has needed for longer than `keepMs`. */
export function unneededEnvironments(
  environments: readonly EnvironmentState[],
  needed: ReadonlySet<string>,
  { nowMs, keepMs }: { nowMs: number; keepMs: number },
): string[] {
  return environments
    .filter(({ id, neededMs }) => !needed.has(id) && nowMs - neededMs > keepMs)
    .map(({ id }) => id);
}

/** Those whose use says nothing any more: each deployment of other files leaves one. */
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

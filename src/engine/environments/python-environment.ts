/**
 * The Python environments of all projects, from `requirements.txt` and `dependencies.sh`. There is one per content,
 * which all projects with this content share. It is created when it is first needed, and removed after it was not needed
 * for a while.
 */
import { basename, dirname, join, resolve } from "node:path";
import { wallMs } from "../../base/clock.ts";
import type { Service } from "../../base/service.ts";
import { createEnvironment, type EnvironmentSource, interpreterIn } from "./create-environment.ts";
import {
  deleteTaken,
  environmentsIn,
  forgetUse,
  isWhole,
  noteNeed,
  noteUse,
  takeAway,
} from "./environment-files.ts";
import { environmentIdentity, requiresNothing } from "./environment-id.ts";
import {
  environmentUser,
  formerUsers,
  neededEnvironments,
  unneededEnvironments,
} from "./environment-uses.ts";
import { Installation } from "./installation.ts";
import { endFormerInstallers, forgetInstaller, Installers, note } from "./installers.ts";
import type { Interpreter } from "./interpreter.ts";
import { Pythons } from "./pythons.ts";

export interface PythonEnvironmentOptions {
  /** The parent directory of all environments. */
  root: string;
  /** The interpreter that Quern runs with. */
  python: string;
  /** The server's variables. Installers see all of them except Quern's own. */
  serverEnv: NodeJS.ProcessEnv;
  /** Keeps a growing log within its limits, until the returned function is called. */
  watchLog: (file: string) => () => void;
}

export class PythonEnvironments implements Service {
  private readonly options: PythonEnvironmentOptions;
  private readonly installations = new Map<string, Installation>();
  private readonly installers: Installers;
  readonly pythons: Pythons;

  constructor(options: PythonEnvironmentOptions) {
    this.options = { ...options, root: resolve(options.root) };
    this.installers = new Installers(options.watchLog);
    this.pythons = new Pythons(options);
  }

  /**
   * Returns the interpreter for a project, and installs the project's requirements. The installer's output goes to
   * `logFile`. `version` is a version of Python, such as `3.11`. A Python other than the server's own always gets an
   * environment, because `python` in its directory may be a different one.
   */
  async prepare(project: string, logFile: string, version?: string): Promise<Interpreter> {
    const { root, serverEnv } = this.options;
    const chosen = version === undefined ? undefined : await this.pythons.require(version);
    const isOwn = chosen === undefined || chosen === (await this.pythons.own().catch(() => undefined));
    if (isOwn && requiresNothing(project)) return this.own();
    const facts = chosen ?? (await this.pythons.own());
    const command = isOwn ? this.options.python : facts.executable;
    const { id, hasLocalDirectories } = await environmentIdentity(project, root, facts, serverEnv);
    const directory = join(root, id);
    const user = environmentUser(basename(project), version);
    // Check and use in one step, so that the environment is not removed in between.
    if (!this.installations.has(directory) && isWhole(directory)) {
      noteUse(directory, user, wallMs());
      return interpreterIn(directory);
    }
    const made = await this.make(directory, user, { project, hasLocalDirectories, logFile, facts, command });
    noteUse(directory, user, wallMs());
    return made;
  }

  /** Creates the environment in `directory`, or waits if its creation is in progress. */
  private async make(directory: string, user: string, source: EnvironmentSource): Promise<Interpreter> {
    const { installers, installations } = this;
    const { serverEnv } = this.options;
    for (;;) {
      const underWay = installations.get(directory);
      if (underWay === undefined) break;
      if (underWay.isEnding) {
        await underWay.work.catch(() => {});
        continue;
      }
      underWay.join(user);
      const words = "the same packages are being installed for another API or job; waiting for them";
      await note(source.logFile, words);
      return underWay.work;
    }
    const installation = new Installation((signal) =>
      createEnvironment(directory, source, { installers, serverEnv, signal }).finally(() =>
        installations.delete(directory),
      ),
    );
    installation.join(user);
    installations.set(directory, installation);
    return installation.work;
  }

  get areInstalling(): boolean {
    return this.installations.size > 0;
  }

  /** For how many milliseconds what this user waits for is being installed; undefined if it waits for nothing. */
  installingMs(user: string): number | undefined {
    for (const installation of this.installations.values())
      if (installation.isFor(user)) return performance.now() - installation.begunMs;
    return undefined;
  }

  /** Ends installations that none of `users` waits for. They were read at `readMs`, by `performance.now()`. */
  endUnneeded(users: ReadonlySet<string>, readMs: number): void {
    for (const installation of this.installations.values()) installation.endUnlessNeeded(users, readMs);
  }

  /**
   * Removes environments that have not been needed for longer than `keepMs`. `users` need theirs, and `programs` are
   * the interpreters of workers. Both were read at `nowMs`. Returns the ids of the removed environments.
   */
  async sweep(
    { users, programs }: { users: ReadonlySet<string>; programs: readonly string[] },
    { nowMs, keepMs }: { nowMs: number; keepMs: number },
  ): Promise<string[]> {
    const { root } = this.options;
    const environments = environmentsIn(root, nowMs);
    const isRunning = (id: string) => programs.some((program) => program.startsWith(`${join(root, id)}/`));
    const running = environments.map(({ id }) => id).filter(isRunning);
    const needed = neededEnvironments(environments, { users, running: new Set(running) });
    const unneeded = new Set(unneededEnvironments(environments, needed, { nowMs, keepMs }));
    for (const id of needed) noteNeed(join(root, id), nowMs);
    for (const { id, uses } of environments)
      for (const user of formerUsers(uses, users, nowMs - keepMs)) forgetUse(join(root, id), user);
    const gone = environments
      .filter(({ id }) => unneeded.has(id) && !this.installations.has(join(root, id)))
      .filter((environment) => takeAway(root, environment))
      .map(({ id }) => id);
    for (const id of gone) await forgetInstaller(join(root, id));
    await deleteTaken(root);
    return gone;
  }

  /** Queries the interpreter in advance, so that the first worker does not wait for it. */
  async start(): Promise<void> {
    await endFormerInstallers(this.options.root);
    this.pythons.own().catch(() => {
      // The next caller asks again, and reports the error.
    });
  }

  /** Ends installations in progress. Calls that wait for them never settle. */
  async stop(): Promise<void> {
    await this.installers.stop();
  }

  /** The server's own interpreter: a project without requirements needs no environment. */
  private async own(): Promise<Interpreter> {
    const { python } = this.options;
    const facts = await this.pythons.own().catch(() => undefined);
    return {
      python,
      bin: facts === undefined ? undefined : dirname(facts.executable),
      virtualEnv: facts?.virtualEnv ?? undefined,
    };
  }
}

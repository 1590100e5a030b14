/**
 * The Pythons that an API can run with: the server's own, those on its PATH, and those that uv knows. One that was
 * found is remembered while it exists. One that was not found is searched for again, because it may be installed
 * meanwhile.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { isTooOld, minorVersionOf, PYTHON_OLDEST } from "../../contracts/config/python-versions.ts";
import { EnvironmentError } from "./environment-error.ts";
import { type InterpreterFacts, interpreterFacts } from "./interpreter.ts";

const run = promisify(execFile);
/** A Python that takes longer to respond is skipped. */
const PROBE_MS = 30_000;

export interface PythonsOptions {
  /** The interpreter that Quern runs with. */
  python: string;
  /** The server's variables, whose PATH is searched. */
  serverEnv: NodeJS.ProcessEnv;
}

export class Pythons {
  private readonly options: PythonsOptions;
  private asked: Promise<InterpreterFacts> | undefined;
  private readonly found = new Map<string, InterpreterFacts>();

  constructor(options: PythonsOptions) {
    this.options = options;
  }

  /** Facts about the server's own Python. They are read once, and again after a failure. */
  own(): Promise<InterpreterFacts> {
    this.asked ??= interpreterFacts(this.options.python).catch((error: unknown) => {
      this.asked = undefined;
      throw error;
    });
    return this.asked;
  }

  /**
   * The reason why the server cannot start with its own Python. A Python that does not run is no reason, because it may
   * be installed later.
   */
  async refusal(): Promise<string | undefined> {
    const version = await this.ownVersion();
    if (version === undefined || !isTooOld(version)) return undefined;
    return `${this.options.python} is Python ${version}, and predictors need ${PYTHON_OLDEST} or later; name another with --python or QUERN_PYTHON`;
  }

  /**
   * Finds the Python of a version such as `3.11`, preferring the server's own. If there is none, the EnvironmentError
   * lists those that exist.
   */
  async require(version: string): Promise<InterpreterFacts> {
    if (isTooOld(version))
      throw new EnvironmentError(
        `Python ${version} is older than ${PYTHON_OLDEST}, the oldest that predictors run with; ${await this.offer()}`,
      );
    const found = await this.find(version);
    if (found !== undefined) return found;
    throw new EnvironmentError(
      `this server has no Python ${version} (no python${version} on its PATH that runs, none that uv knows); install it, or choose another: ${await this.offer()}`,
    );
  }

  private async find(version: string): Promise<InterpreterFacts | undefined> {
    if ((await this.ownVersion()) === version) return this.own();
    const known = this.found.get(version);
    if (known !== undefined && existsSync(known.executable)) return known;
    const facts = (await this.onPath(version)) ?? (await this.ofUv(version));
    if (facts !== undefined) this.found.set(version, facts);
    return facts;
  }

  private async ownVersion(): Promise<string | undefined> {
    return this.own().then(minorVersionOf, () => undefined);
  }

  /** Version managers have shims for versions that are not installed, so a Python that does not run is skipped. */
  private async onPath(version: string): Promise<InterpreterFacts | undefined> {
    for (const directory of this.directories()) {
      const facts = await this.probe(join(directory, `python${version}`), version);
      if (facts !== undefined) return facts;
    }
    return undefined;
  }

  private async ofUv(version: string): Promise<InterpreterFacts | undefined> {
    const path = (await this.uv("find", version)).trim();
    return isAbsolute(path) ? this.probe(path, version) : undefined;
  }

  private async probe(python: string, version: string): Promise<InterpreterFacts | undefined> {
    if (!existsSync(python)) return undefined;
    const options = { env: this.options.serverEnv, timeout: PROBE_MS };
    const facts = await interpreterFacts(python, options).catch(() => undefined);
    return facts !== undefined && minorVersionOf(facts) === version ? facts : undefined;
  }

  /** Describes the available Pythons for a message. It is slow, because it runs each of them. */
  private async offer(): Promise<string> {
    const own = await this.ownVersion();
    const named = [...(await this.namesOnPath()), ...(await this.namesOfUv())];
    const others = [...new Set(named)].filter((version) => version !== own && !isTooOld(version));
    const runs = await Promise.all(others.map(async (version) => (await this.find(version)) !== undefined));
    const there = others.filter((_, at) => runs[at]).sort(byVersion);
    const all = [...(own === undefined ? [] : [`${own} (its own)`]), ...there];
    return all.length === 0 ? "this server has none" : `this server has ${all.join(", ")}`;
  }

  private async namesOnPath(): Promise<string[]> {
    const lists = await Promise.all(
      this.directories().map((directory) => readdir(directory).catch(() => [])),
    );
    return lists.flat().flatMap((name) => /^python(3\.\d+)$/.exec(name)?.[1] ?? []);
  }

  private async namesOfUv(): Promise<string[]> {
    const text = await this.uv("list", "--only-installed");
    return [...text.matchAll(/^\w+-(3\.\d+)\./gm)].map(([, version]) => version!);
  }

  /**
   * The output of uv; empty if it is not installed. VIRTUAL_ENV is unset, because uv would prefer the environment in
   * which the server was started.
   */
  private async uv(...args: string[]): Promise<string> {
    const options = {
      env: { ...this.options.serverEnv, VIRTUAL_ENV: undefined },
      cwd: "/",
      timeout: PROBE_MS,
    };
    const { stdout } = await run("uv", ["python", ...args], options).catch(() => ({ stdout: "" }));
    return stdout;
  }

  private directories(): string[] {
    const names = (this.options.serverEnv.PATH ?? "").split(delimiter).filter((name) => isAbsolute(name));
    return [...new Set(names)];
  }
}

function byVersion(a: string, b: string): number {
  return Number(a.split(".")[1]) - Number(b.split(".")[1]);
}

/** The environment of this process. Only this file reads `process.env`. */
import { homedir, tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { SETTINGS, type SettingName } from "./settings.ts";

/** The environment of the server, a part of which user code may see, or of a command. */
export const serverEnvironment: NodeJS.ProcessEnv = process.env;

/** The text of a setting. A command-line option wins over its variable, which wins over the default. */
export function setting(name: SettingName, given?: string): string {
  return (
    given ?? variable(SETTINGS[name].env) ?? (name === "dataDir" ? defaultDataDir() : SETTINGS[name].default)
  );
}

/** QUERN_HOST, if it is set. */
export function givenHost(): string | undefined {
  return variable(SETTINGS.host.env);
}

/** A variable that is set but empty counts as not set. */
function variable(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** Removes and returns variables that are meant for this process alone, so that its children do not have them. */
export function takeVariables<Name extends string>(names: readonly Name[]): Partial<Record<Name, string>> {
  const taken: Partial<Record<Name, string>> = {};
  for (const name of names) {
    taken[name] = process.env[name];
    delete process.env[name];
  }
  return taken;
}

function defaultDataDir(): string {
  return join(process.env.XDG_STATE_HOME || join(homedir(), ".local", "state"), "quern");
}

/** The directory of the command line's own files: `$XDG_CONFIG_HOME/quern`. */
export function configDirectory(): string {
  return join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "quern");
}

/** The file that tells kubectl where a cluster is: the first of `$KUBECONFIG`. */
export function kubeconfigFile(): string {
  return process.env.KUBECONFIG?.split(delimiter).find(Boolean) ?? join(homedir(), ".kube", "config");
}

/**
 * The directory in which the runtime directories of servers are: `$XDG_RUNTIME_DIR`. A relative path counts as not set
 * (https://specifications.freedesktop.org/basedir-spec/latest/).
 */
export function runtimeParent(): string {
  const given = process.env.XDG_RUNTIME_DIR ?? "";
  return isAbsolute(given) ? given : tmpdir();
}

/** Whether colours and progress bars are switched off. They also need a terminal. */
export function isPlainOutput(): boolean {
  return process.env.NO_COLOR !== undefined || process.env.CI !== undefined || process.env.TERM === "dumb";
}

/** The program that opens an address in a browser; undefined without a desktop, such as over SSH. */
export function browserOpener(): string | undefined {
  if (process.platform === "darwin") return process.env.SSH_CONNECTION === undefined ? "open" : undefined;
  const isDesktop = process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  return isDesktop ? "xdg-open" : undefined;
}

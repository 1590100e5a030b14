/**
 * Decides what a command without names refers to: the only API, or the application, of the configuration in the current
 * directory. In an application's directory its resources need no `-a`. Commands that delete never use such a guess.
 */
import { readdirSync } from "node:fs";
import { parse } from "yaml";
import { type CliContext, CliError, EXIT } from "../server/context.ts";

export interface About {
  /** `-a`, or the application of the current directory. */
  app: string | undefined;
  names: string[];
}

interface Subject {
  kind: "api" | "application";
  name: string;
}

interface Configuration {
  file: string;
  /** Undefined if the configuration cannot be read. */
  subjects: Subject[] | undefined;
}

const NOTHING_HERE = "this directory has no configuration that names one";

/**
 * Undefined if nothing is named and this directory does not decide. `more` is appended to the message about a guess.
 */
export async function aboutHere(context: CliContext, names: string[], more = ""): Promise<About | undefined> {
  const { app } = context;
  if (app !== undefined) return { app, names };
  const here = await configurationHere();
  const [subject, another] = here?.subjects ?? [];
  const isOne = subject !== undefined && another === undefined;
  if (names.length > 0) {
    const isOfApp = isOne && subject.kind === "application" && (await hasResource(context, subject, names));
    return { app: isOfApp ? subject.name : undefined, names };
  }
  if (!isOne) return undefined;
  context.err(
    `${subject.kind === "api" ? "API" : subject.kind} ${subject.name}, from ${here!.file}${more}\n`,
  );
  return subject.kind === "api"
    ? { app: undefined, names: [subject.name] }
    : { app: subject.name, names: [] };
}

/** The same for a command that needs a subject. Throws an error that says what to name. */
export async function requireAbout(context: CliContext, names: string[]): Promise<About> {
  const about = await aboutHere(context, names);
  if (about !== undefined) return about;
  const why = reasonOf(await configurationHere());
  throw new CliError(`name the API, or an application with -a: ${why}`, EXIT.usage);
}

function reasonOf(here: Configuration | undefined): string {
  if (here === undefined) return NOTHING_HERE;
  const { file, subjects } = here;
  if (subjects === undefined) return `${file} cannot be read; \`quern check\` says why`;
  if (subjects.length === 0) return `${file} has none`;
  return `${file} has ${subjects.map(({ name }) => name).join(", ")}`;
}

async function hasResource(context: CliContext, { name }: Subject, names: string[]): Promise<boolean> {
  return (await import("./applications.ts")).hasResource(context, name, names[0]!);
}

async function configurationHere(): Promise<Configuration | undefined> {
  // The check saves time: loading the packer takes a while.
  if (!filesHere().some((name) => name.endsWith(".yaml"))) return undefined;
  const { configurationOf, configurationText } = await import("./pack-project.ts");
  const file = configurationOf(".");
  try {
    const text = configurationText(file);
    return text === undefined ? undefined : { file, subjects: subjectsOf(text) };
  } catch (error) {
    if (error instanceof CliError) return { file, subjects: undefined };
    throw error;
  }
}

function filesHere(): string[] {
  try {
    return readdirSync(".");
  } catch {
    return [];
  }
}

export function isApplication(text: string): boolean {
  return subjectsOf(text)?.[0]?.kind === "application";
}

/** An application is one subject, even if the file also has its resources. */
function subjectsOf(text: string): Subject[] | undefined {
  let entries: unknown;
  try {
    entries = parse(text, { schema: "core", logLevel: "error" });
  } catch {
    return undefined;
  }
  if (!Array.isArray(entries)) return undefined;
  const named = entries.filter((entry) => typeof entry?.name === "string") as Record<string, string>[];
  const app = named.find(({ kind }) => kind === "app");
  if (app !== undefined) return [{ kind: "application", name: app.name! }];
  return named.map(({ name }) => ({ kind: "api", name: name! }));
}

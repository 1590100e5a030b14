/** `quern init`: creates a project from a template, which is one of the examples. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { type CliContext, CliError, EXIT } from "../server/context.ts";

/** By name: the example, and a description of it. */
export const TEMPLATES: Record<string, { example: string; about: string; commands: readonly string[] }> = {
  iris: {
    example: "iris",
    about: "a real-time API and a batch API over one class, no packages",
    commands: ["quern deploy --wait", "quern predict iris flower.json"],
  },
  "scikit-learn": {
    example: "iris-sklearn",
    about: "a model trained with packages from requirements.txt",
    commands: ["quern deploy --wait", "quern predict iris-sklearn flowers.json"],
  },
  files: {
    example: "image-files",
    about: "a batch API over pictures in a directory",
    commands: ["quern deploy", "quern job submit digits job.json --dry-run"],
  },
};

export async function initProject(
  { files, out, err }: CliContext,
  directory: string,
  options: { template: string },
): Promise<number> {
  const { template: name } = options;
  const template = Object.hasOwn(TEMPLATES, name) ? TEMPLATES[name] : undefined;
  if (template === undefined)
    throw new CliError(
      `there is no template "${name}"; there are ${Object.keys(TEMPLATES).join(", ")}`,
      EXIT.usage,
    );
  const target = resolve(directory);
  const source = join(files.examples, template.example);
  const names = readdirSync(source);
  const taken = names.filter((name) => existsSync(join(target, name)));
  if (taken.length > 0)
    throw new CliError(`${target} has ${taken.join(", ")} already; name another directory`, EXIT.conflict);
  mkdirSync(target, { recursive: true });
  for (const name of names) cpSync(join(source, name), join(target, name), { recursive: true });
  const job = join(target, "job.json");
  if (existsSync(job)) writeFileSync(job, readFileSync(job, "utf8").replaceAll("/path/to/", `${target}/`));
  await out(`${names.map((name) => join(relative(process.cwd(), target) || ".", name)).join("\n")}\n`);
  const into = target === process.cwd() ? [] : [`cd ${directory}`];
  const steps = [`quern up --allow-local-root "$PWD" &`, ...template.commands];
  err(`\n${template.about}; next:\n${[...into, ...steps].map((step) => `  ${step}`).join("\n")}\n`);
  return EXIT.success;
}

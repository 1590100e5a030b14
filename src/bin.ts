/**
 * The entry point of everything: a child of the parent, or the command line. Modules are loaded when they are needed.
 */
const verb = process.argv[2];

if (verb === "__gateway" || verb === "__controller") {
  const { runChild } = await import("./child.ts");
  await runChild(verb === "__gateway" ? "gateway" : "controller");
} else {
  const { runCommandLine } = await import("./command-line.ts");
  process.exitCode = await runCommandLine(process.argv);
}

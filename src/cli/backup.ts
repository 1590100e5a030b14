/** `quern backup` and `quern restore`. */
import { type CliContext, CliError, EXIT } from "./server/context.ts";

/** Standard output or input. */
const PIPE = "-";
const MIB = 1024 * 1024;
const SHOWN_EVERY_MS = 200;

/** `to`: a file, `s3://…`, `gs://…`, `az://…`, or `-` for standard output. */
export async function backup(context: CliContext, to: string): Promise<number> {
  const { saveBackup, targetProblem } = await context.savedBackups();
  const problem = to === PIPE ? pipeProblem(context) : targetProblem(to);
  if (problem !== undefined) throw new CliError(problem, EXIT.conflict);
  const response = await context.client.request("/-/backups", { method: "POST" });
  let bytes = 0;
  let shownMs = 0;
  async function* counted() {
    try {
      for await (const chunk of response as AsyncIterable<Uint8Array>) {
        bytes += chunk.length;
        if (context.isInteractive && performance.now() - shownMs > SHOWN_EVERY_MS) {
          shownMs = performance.now();
          context.errLine(`${mib(bytes)} MiB`);
        }
        yield chunk;
      }
    } catch (error) {
      const why = (error as Error).message;
      throw new CliError(
        `the backup was cut off (${why}), and is not kept; take it again. The server's log says more`,
        EXIT.failed,
      );
    }
  }
  if (to === PIPE) for await (const chunk of counted()) await context.outBytes(chunk);
  else await saveBackup(to, counted());
  if (context.isInteractive) context.errLine("");
  context.err(
    `wrote ${to === PIPE ? "the backup" : to}, ${mib(bytes)} MiB\n\nquern restore ${to === PIPE ? "FILE" : to} --data-dir <new directory>\n`,
  );
  return EXIT.success;
}

function pipeProblem({ isTerminal }: CliContext): string | undefined {
  return isTerminal ? "a backup is no text; name a file, or write it to a pipe" : undefined;
}

/** Makes a data directory from a backup. */
export async function restore(
  context: CliContext,
  from: string,
  { dataDir }: { dataDir: string },
): Promise<number> {
  const { restoreFrom } = await context.savedBackups();
  const restored = await restoreFrom(from, dataDir).catch((error: Error) => {
    if (error.name !== "CannotRestore") throw error;
    throw new CliError(`${from} cannot be restored: ${error.message}`, EXIT.failed);
  });
  if (context.output === "json") await context.out(`${JSON.stringify({ data_dir: dataDir, ...restored })}\n`);
  else
    await context.out(
      `${dataDir} is as it was at ${restored.taken_time}: ${restored.apis} APIs, ${restored.jobs} jobs, of which ${restored.unfinished} go on\n`,
    );
  context.err(`\nquern up --data-dir ${dataDir}\n`);
  return EXIT.success;
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}

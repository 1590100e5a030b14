/** Finds the GPUs of this machine, under the names that CUDA uses. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const ANSWER_MS = 5_000;

/**
 * Lists the GPUs. `given` is the operator's setting: a list of indices or UUIDs, `none`, or empty. If it is empty, the
 * server's own CUDA_VISIBLE_DEVICES decides, and without that the driver. Without a driver there are none.
 */
export async function findGpus(given: string, visible: string | undefined): Promise<string[]> {
  if (given === "none") return [];
  if (given !== "") return listOf(given);
  if (visible !== undefined) return listOf(visible);
  const query = ["--query-gpu=index", "--format=csv,noheader"];
  return run("nvidia-smi", query, { timeout: ANSWER_MS }).then(
    ({ stdout }) => listOf(stdout.trim().replaceAll("\n", ",")),
    () => [],
  );
}

function listOf(text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  // CUDA stops at the first unknown name; usually that is -1.
  const end = names.findIndex((name) => name === "" || name === "-1");
  return end < 0 ? names : names.slice(0, end);
}

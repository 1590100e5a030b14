/** The GPUs of this machine, by the names under which CUDA knows them. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const ANSWER_MS = 5_000;

/**
 * `given`: what the operator says: a list of indices or UUIDs, `none`, or nothing. Then what this server itself may see
 * (CUDA_VISIBLE_DEVICES), else what the driver shows; none where there is no driver.
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
  // CUDA stops at the first name that it does not know; -1 is the customary one.
  const end = names.findIndex((name) => name === "" || name === "-1");
  return end < 0 ? names : names.slice(0, end);
}

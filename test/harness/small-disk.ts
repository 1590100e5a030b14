/** A disk of its own for a data directory, so that a test can fill it. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";

/** Mounts a tmpfs at `path`; false without the right to, which only root has. */
export function mountSmallDisk(path: string, mib: number, options = ""): boolean {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const all = `size=${mib}m,mode=0700${options}`;
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", all, "tmpfs", path], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

export function unmount(path: string): void {
  execFileSync("umount", ["-l", path]);
}

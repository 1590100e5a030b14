/** What a `requirements.txt` names beside packages of an index: other requirement files, and local files and directories. Pure. */
import { isAbsolute, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export interface NamedFiles {
  /** By -r and -c, relative to the file that names them. */
  files: string[];
  /**
   * Texts that may be local paths, relative to the project. More than pip takes for one, and whoever reads them looks whether they
   * are there: a word too many makes a second environment at worst, a word too few a stale one.
   */
  candidates: string[];
}

const FILE_OPTION = /^(?:-r|--requirement|-c|--constraint)[ =]?\s*("[^"]*"|'[^']*'|\S+)/;
const ARCHIVE = /\.(whl|zip|tar|tar\.\w+|tgz|tbz|txz)$/i;

export function namedBy(text: string, env: NodeJS.ProcessEnv): NamedFiles {
  const named: NamedFiles = { files: [], candidates: [] };
  for (const line of logicalLines(text)) {
    const expanded = line.replace(/\$\{([A-Z0-9_]+)\}/g, (all, name: string) => env[name] ?? all);
    const file = FILE_OPTION.exec(expanded)?.[1];
    if (file !== undefined) named.files.push(unquoted(file));
    else named.candidates.push(...candidatesOf(expanded));
  }
  return named;
}

/** The absolute path that a candidate or a file's name stands for; undefined where it is the address of something elsewhere. */
export function localPathOf(name: string, directory: string): string | undefined {
  if (name.startsWith("file:")) {
    try {
      return name.startsWith("file://") ? fileURLToPath(name) : resolve(directory, name.slice(5));
    } catch {
      // Another host's, or no URL.
      return undefined;
    }
  }
  if (/^[a-z+]+:\/\//i.test(name)) return undefined;
  return isAbsolute(name) ? name : resolve(directory, name);
}

/** As pip reads them: `\` goes on in the next line, `#` begins a comment at the start or behind a space. */
function logicalLines(text: string): string[] {
  return text
    .replace(/\\\r?\n/g, "")
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s+)#.*$/, "").trim())
    .filter((line) => line !== "");
}

/** The words of a line, and what is behind its option as a whole: a path may have spaces. Without extras, markers and fragments. */
function candidatesOf(line: string): string[] {
  const whole = line.replace(/^--?[\w-]+[ =]?\s*/, "").replace(/\s--?\w.*$/, "");
  const words = line.split(/[\s=]+/);
  const bare = [whole.replace(/\s*;.*$/, ""), ...words].map((word) =>
    unquoted(word)
      .replace(/^-[ef]/, "")
      .replace(/[#;].*$/, "")
      .replace(/\[[^\]]*\]$/, ""),
  );
  return [...new Set(bare.filter(looksLikePath))];
}

function looksLikePath(word: string): boolean {
  return (
    word === "." || word === ".." || word.startsWith("file:") || word.includes("/") || ARCHIVE.test(word)
  );
}

function unquoted(word: string): string {
  return word.replace(/^(["'])(.*)\1$/, "$2");
}

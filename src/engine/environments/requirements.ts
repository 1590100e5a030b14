/**
 * Finds what a `requirements.txt` names besides packages of an index: other requirement files, and local files and
 * directories. Pure.
 */
import { isAbsolute, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export interface NamedFiles {
  /** Files of -r and -c, relative to the file that names them. */
  files: string[];
  /**
   * Texts that may be local paths, relative to the project. They include texts that pip does not treat as paths, so the
   * caller checks whether they exist. A wrong candidate causes a second environment at worst. A missing one causes an
   * outdated environment.
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

/** The absolute path of a candidate or file name; undefined if it is a remote address. */
export function localPathOf(name: string, directory: string): string | undefined {
  if (name.startsWith("file:")) {
    try {
      return name.startsWith("file://") ? fileURLToPath(name) : resolve(directory, name.slice(5));
    } catch {
      // The URL names another host, or is invalid.
      return undefined;
    }
  }
  if (/^[a-z+]+:\/\//i.test(name)) return undefined;
  return isAbsolute(name) ? name : resolve(directory, name);
}

/**
 * As pip reads them: `\` continues in the next line, and `#` begins a comment at the start of a line or after a space.
 */
function logicalLines(text: string): string[] {
  return text
    .replace(/\\\r?\n/g, "")
    .split(/\r?\n/)
    .map((line) => before(line, /(^|\s)#/).trim())
    .filter((line) => line !== "");
}

/**
 * The words of a line, and all that follows its option, because a path may contain spaces. Extras, markers and
 * fragments are removed.
 */
function candidatesOf(line: string): string[] {
  const whole = before(line.replace(/^--?[\w-]+[ =]?\s*/, ""), /\s--?\w/);
  const words = line.split(/[\s=]+/);
  const bare = [before(whole, /;/).trimEnd(), ...words].map((word) =>
    withoutExtras(before(unquoted(word).replace(/^-[ef]/, ""), /[#;]/)),
  );
  return [...new Set(bare.filter(looksLikePath))];
}

function looksLikePath(word: string): boolean {
  return (
    word === "." || word === ".." || word.startsWith("file:") || word.includes("/") || ARCHIVE.test(word)
  );
}

/** In one pass, as all here: `\s*#.*$` would take a minute for 100,000 spaces. */
function before(text: string, end: RegExp): string {
  const at = text.search(end);
  return at < 0 ? text : text.slice(0, at);
}

/** Without `[extras]` at its end. */
function withoutExtras(word: string): string {
  if (!word.endsWith("]")) return word;
  const at = word.indexOf("[", word.lastIndexOf("]", word.length - 2) + 1);
  return at < 0 ? word : word.slice(0, at);
}

function unquoted(word: string): string {
  return word.replace(/^(["'])(.*)\1$/, "$2");
}

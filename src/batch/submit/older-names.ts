/** Gives members of a submission that have a name of Cortex the name that they have here. Pure. */
import type { FieldError } from "../../contracts/errors.ts";

export interface OlderName {
  /** The member of the submission that contains it; undefined for a member of the submission itself. */
  within?: string;
  older: string;
  newer: string;
}

const OLDER_NAMES: readonly OlderName[] = [
  { within: "file_path_lister", older: "s3_paths", newer: "store_paths" },
  { within: "delimited_files", older: "s3_paths", newer: "store_paths" },
  { older: "sqs_dead_letter_queue", newer: "queue_dead_letter_queue" },
];

export interface Renamed {
  value: unknown;
  /** Older names that were given without the newer one. */
  used: readonly OlderName[];
  /** One for each older name that was given with the newer one. */
  errors: readonly FieldError[];
}

type Members = Record<string, unknown>;

/** `value`: a submission, as far as it is read. It is not changed. */
export function withNewerNames(value: unknown): Renamed {
  const errors: FieldError[] = [];
  const used: OlderName[] = [];
  const renamed = OLDER_NAMES.reduce((whole, name) => {
    const { within, older, newer } = name;
    const members = within === undefined ? whole : isObject(whole) ? whole[within] : undefined;
    if (!isObject(members) || !Object.hasOwn(members, older)) return whole;
    if (Object.hasOwn(members, newer))
      errors.push({ pointer: pointerTo(within, older), detail: bothGiven(name) });
    else used.push(name);
    const inner = renamedMember(members, older, newer);
    return within === undefined ? inner : { ...(whole as Members), [within]: inner };
  }, value);
  return { value: renamed, used, errors };
}

/** If both are given, the newer one is kept. */
function renamedMember(members: Members, older: string, newer: string): Members {
  const hasBoth = Object.hasOwn(members, newer);
  const kept = Object.entries(members).filter(([name]) => !(hasBoth && name === older));
  return Object.fromEntries(kept.map(([name, member]) => [name === older ? newer : name, member]));
}

function bothGiven({ older, newer }: OlderName): string {
  return `${older} is an older name of ${newer}, and both are given; keep ${newer}`;
}

/** Returns errors whose pointers have the names that were sent. */
export function inSentNames(errors: readonly FieldError[], used: readonly OlderName[]): FieldError[] {
  return errors.map(({ pointer, detail }) => {
    const name = used.find(({ within, newer }) => isWithin(pointer, pointerTo(within, newer)));
    if (name === undefined) return { pointer, detail };
    const rest = pointer.slice(pointerTo(name.within, name.newer).length);
    return { pointer: `${pointerTo(name.within, name.older)}${rest}`, detail };
  });
}

function isWithin(pointer: string, whole: string): boolean {
  return pointer === whole || pointer.startsWith(`${whole}/`);
}

function pointerTo(within: string | undefined, name: string): string {
  return within === undefined ? `/${name}` : `/${within}/${name}`;
}

function isObject(value: unknown): value is Members {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

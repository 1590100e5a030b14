/**
 * A JSON text without its secrets, as `stringifyExact(names.hide(parseExact(text)))` writes it, in small steps: a
 * configuration may have 30,000 names, and creating all of them at once blocks whoever else waits. The text must be
 * valid JSON. Pure.
 */
import { HIDDEN, hideInText, type SecretNames } from "../../contracts/secrets.ts";

/** Characters of one step: up to 1 ms. A longer text or name is one step, of up to 25 ms. */
const STEP = 4096;

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Where a value is in the configuration of an API. */
type Place = "spec" | "predictor" | "env";

/** Yields between two steps. Undefined if the text has no secrets. */
export function* shownJson(text: string, names: SecretNames): Generator<undefined, string | undefined> {
  const reader = new Reader(text, names);
  const shown = yield* reader.value();
  return reader.isChanged ? shown : undefined;
}

/** The same for the configuration of an API, as `names.hideInSpec` shows it: without the values of `env`. */
export function* shownSpecJson(text: string, names: SecretNames): Generator<undefined, string | undefined> {
  const reader = new Reader(text, names);
  const shown = yield* reader.value("spec");
  return reader.isChanged ? shown : undefined;
}

class Reader {
  /** Whether a secret was hidden in the value that was read last. */
  isChanged = false;
  private readonly text: string;
  private readonly names: SecretNames;
  private at = 0;
  private stepEnd = STEP;

  constructor(text: string, names: SecretNames) {
    this.text = text;
    this.names = names;
  }

  /** The next value, as it is shown. */
  *value(place?: Place): Generator<undefined, string> {
    const first = this.peek();
    if (first === OPEN_BRACE) return yield* this.object(place);
    return first === OPEN_BRACKET ? yield* this.list() : this.scalar(first);
  }

  private *object(place: Place | undefined): Generator<undefined, string> {
    const members = new Members();
    this.at++;
    for (let next = this.peek(); next !== CLOSE_BRACE; next = this.peek()) {
      const token = this.stringToken();
      const name = stringOf(token);
      this.stepOver(COLON);
      const first = this.peek();
      const inner = place === undefined ? undefined : placeIn(place, name);
      const shown =
        (inner === undefined ? this.secret(name, place) : undefined) ??
        (isScalar(first) ? this.scalar(first) : yield* this.value(inner));
      members.set(name, `${isPlain(token) ? token : JSON.stringify(name)}:${shown}`, this.isChanged);
      this.stepOver(COMMA);
      if (this.at >= this.stepEnd) yield* this.rest();
    }
    this.at++;
    this.isChanged = members.isChanged;
    return `{${members.ordered().join(",")}}`;
  }

  private *list(): Generator<undefined, string> {
    const items: string[] = [];
    let isChanged = false;
    this.at++;
    for (let next = this.peek(); next !== CLOSE_BRACKET; next = this.peek()) {
      items.push(isScalar(next) ? this.scalar(next) : yield* this.value());
      isChanged ||= this.isChanged;
      this.stepOver(COMMA);
      if (this.at >= this.stepEnd) yield* this.rest();
    }
    this.at++;
    this.isChanged = isChanged;
    return `[${items.join(",")}]`;
  }

  private *rest(): Generator<undefined, void> {
    yield;
    this.stepEnd = this.at + STEP;
  }

  private scalar(first: number): string {
    this.isChanged = false;
    if (first !== QUOTE) return this.unquoted();
    const token = this.stringToken();
    const value = stringOf(token);
    const shown = hideInText(value);
    this.isChanged = shown !== value;
    return this.isChanged || !isPlain(token) ? JSON.stringify(shown) : token;
  }

  /** Undefined if the name is not one of a secret. */
  private secret(name: string, place: Place | undefined): string | undefined {
    if (place === "env") return this.masked();
    return this.names.has(name) ? this.hidden() : undefined;
  }

  /** The value of a secret. Null and booleans are shown. */
  private hidden(): string {
    const start = this.at;
    this.skipValue();
    const value = this.text.slice(start, this.at);
    this.isChanged = false;
    if (value === "null" || value === "true" || value === "false") return value;
    this.isChanged = value.charCodeAt(0) !== QUOTE || stringOf(value) !== HIDDEN;
    return `"${HIDDEN}"`;
  }

  /** A value that is hidden whatever it is. */
  private masked(): string {
    const start = this.at;
    this.skipValue();
    this.isChanged = this.text.slice(start, this.at) !== `"${HIDDEN}"`;
    return `"${HIDDEN}"`;
  }

  private skipValue(): void {
    let depth = 0;
    do {
      const first = this.peek();
      if (first === OPEN_BRACE || first === OPEN_BRACKET) depth++;
      if (first === CLOSE_BRACE || first === CLOSE_BRACKET) depth--;
      if (first === QUOTE) this.stringToken();
      else if (isPunctuation(first)) this.at++;
      else this.unquoted();
    } while (depth > 0);
  }

  private stringToken(): string {
    const { text, at } = this;
    let end = text.indexOf('"', at + 1);
    while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
    this.at = end + 1;
    return text.slice(at, this.at);
  }

  /** A number, `true`, `false` or `null`, as it was written. */
  private unquoted(): string {
    const { text, at } = this;
    while (this.at < text.length && !isEnd(text.charCodeAt(this.at))) this.at++;
    return text.slice(at, this.at);
  }

  /** The next character that is not white space. */
  private peek(): number {
    let next = this.text.charCodeAt(this.at);
    while (next <= 0x20) next = this.text.charCodeAt(++this.at);
    return next;
  }

  private stepOver(punctuation: number): void {
    if (this.peek() === punctuation) this.at++;
  }
}

/** The members of an object as texts: the last one of a duplicate name is in the place of the first, as when parsed. */
class Members {
  private readonly places = new Map<string, number>();
  private readonly texts: string[] = [];
  private readonly changed = new Set<number>();
  /** An object has names like `7` before all others. */
  private hasNumbers = false;

  get isChanged(): boolean {
    return this.changed.size > 0;
  }

  set(name: string, text: string, isChanged: boolean): void {
    const place = this.places.get(name) ?? this.texts.length;
    if (place === this.texts.length) this.places.set(name, place);
    this.texts[place] = text;
    if (isChanged) this.changed.add(place);
    else if (this.changed.size > 0) this.changed.delete(place);
    const first = name.charCodeAt(0);
    this.hasNumbers ||= first >= 0x30 && first <= 0x39;
  }

  ordered(): string[] {
    if (!this.hasNumbers) return this.texts;
    return Object.values(Object.fromEntries(this.places)).map((place) => this.texts[place]!);
  }
}

function placeIn(place: Place, name: string): Place | undefined {
  if (place === "spec" && name === "predictor") return "predictor";
  return place === "predictor" && name === "env" ? "env" : undefined;
}

function isScalar(first: number): boolean {
  return first !== OPEN_BRACE && first !== OPEN_BRACKET;
}

function isEnd(character: number): boolean {
  return character <= 0x20 || character === COMMA || character === CLOSE_BRACE || character === CLOSE_BRACKET;
}

function isPunctuation(character: number): boolean {
  return character === COLON || character === OPEN_BRACE || character === OPEN_BRACKET || isEnd(character);
}

/** Whether an odd number of backslashes is before it. */
function isEscaped(text: string, at: number): boolean {
  let from = at;
  while (text.charCodeAt(from - 1) === BACKSLASH) from--;
  return (at - from) % 2 === 1;
}

/** Whether a string as JSON is its value between quotes, and is written again as it is. */
function isPlain(token: string): boolean {
  return !token.includes("\\");
}

function stringOf(token: string): string {
  return isPlain(token) ? token.slice(1, -1) : (JSON.parse(token) as string);
}

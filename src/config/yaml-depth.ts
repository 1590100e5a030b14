/**
 * Bounds the nesting of YAML while it is parsed. The parser recurses, and must come nowhere near the end of its stack:
 * V8 ends the whole process if it has to compile a regular expression there.
 */
import {
  Composer,
  CST,
  type Document,
  type DocumentOptions,
  isCollection,
  isPair,
  Lexer,
  type LineCounter,
  type Node,
  type ParseOptions,
  Parser,
  type SchemaOptions,
  YAMLParseError,
} from "yaml";

/** For each level that a configuration may have, the parser keeps up to three open tokens. */
const TOKENS_A_LEVEL = 4;

/** Indicators that the lexer reads by a recursion of its own if only spaces are between them. */
const LEADING: readonly (CST.TokenType | null)[] = [
  "seq-item-ind",
  "explicit-key-ind",
  "map-value-ind",
  "space",
  "doc-mode",
];

class TooDeep extends Error {
  readonly offset: number;
  constructor(offset: number) {
    super();
    this.offset = offset;
  }
}

/**
 * As `parseDocument`, but the offset in the text where lists and maps are nested deeper than `most`, if they are. Texts
 * that are much deeper are not parsed to their end.
 */
export function parseShallow(
  text: string,
  most: number,
  options: ParseOptions & DocumentOptions & SchemaOptions & { lineCounter?: LineCounter },
): Document.Parsed | number {
  try {
    const tokens = shallowTokens(text, most, options.lineCounter);
    const [document, another] = new Composer(options).compose(tokens, true, text.length);
    if (another !== undefined) document!.errors.push(severalDocuments(another));
    return tooDeepAt(document!.contents, most) ?? document!;
  } catch (error) {
    if (error instanceof TooDeep) return error.offset;
    throw error;
  }
}

function* shallowTokens(text: string, most: number, lines: LineCounter | undefined): Generator<CST.Token> {
  const parser = new Parser(lines?.addNewLine);
  lines?.addNewLine(0);
  let leading = 0;
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    leading = LEADING.includes(CST.tokenType(lexeme)) ? leading + 1 : 0;
    if (Math.max(parser.stack.length, leading) > most * TOKENS_A_LEVEL) throw new TooDeep(parser.offset);
  }
  yield* parser.end();
}

function severalDocuments({ range }: Document.Parsed): YAMLParseError {
  const [begin, end] = range;
  return new YAMLParseError(
    [begin, end],
    "MULTIPLE_DOCS",
    "the file has several documents; keep one of them",
  );
}

function tooDeepAt(node: unknown, most: number): number | undefined {
  if (isPair(node)) return tooDeepAt(node.key, most) ?? tooDeepAt(node.value, most);
  if (!isCollection(node)) return undefined;
  if (most === 0) return (node as Node).range?.[0] ?? 0;
  for (const item of node.items) {
    const found = tooDeepAt(item, most - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

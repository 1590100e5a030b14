/** Writes values as YAML that is read as the same values again, every number in the digits in which it was written. */
import { Document, type ScalarTag } from "yaml";
import { JsonNumber } from "../base/json/exact.ts";

const EXACT_NUMBER: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  identify: (value) => value instanceof JsonNumber,
  resolve: (text) => text,
  stringify: ({ value }) => (value as JsonNumber).text,
};

export function writeYaml(value: unknown): string {
  const document = new Document(value, {
    schema: "core",
    customTags: [EXACT_NUMBER],
    aliasDuplicateObjects: false,
  });
  return document.toString({ lineWidth: 0 });
}

/**
 * `kind: template` and `kind: embed`, purely: textual substitution of `{name}`, then YAML
 * (docs/contract/applications.md#templates).
 */

/** A template's text with its args filled in, or the errors in them. `{{` and `}}` become single braces. */
export function fillTemplate(
  name: string,
  text: string,
  args: Readonly<Record<string, unknown>>,
): { text: string } | { faults: string[] } {
  const wanted = new Set<string>();
  const filled = text.replace(/\{\{|\}\}|\{\s*([A-Za-z0-9_-]+)\s*\}/g, (found, arg: string | undefined) => {
    if (arg === undefined) return found[0]!;
    wanted.add(arg);
    return String((Object.hasOwn(args, arg) ? args[arg] : undefined) ?? "");
  });
  const faults = [
    ...[...wanted]
      .filter((arg) => !Object.hasOwn(args, arg))
      .map((arg) => `template "${name}" requires an arg named "${arg}"`),
    ...Object.keys(args)
      .filter((arg) => !wanted.has(arg))
      .map((arg) => `template "${name}" does not support an arg named "${arg}"`),
  ];
  return faults.length > 0 ? { faults } : { text: filled };
}

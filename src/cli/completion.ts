/** `quern completion bash|zsh|fish`: generated from the verbs, so that it is always up to date. */
import type { Command } from "commander";
import { CliError, EXIT } from "./server/context.ts";

interface Verb {
  /** `job submit`; empty for the program. */
  path: string;
  about: string;
  options: string[];
  verbs: { name: string; about: string }[];
}

const SHELLS: Record<string, (verbs: readonly Verb[]) => string> = { bash, zsh, fish };

export function completionScript(program: Command, shell: string): string {
  const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (write !== undefined) return write(verbsOf(program, ""));
  throw new CliError(`no completion for "${shell}"; choose ${Object.keys(SHELLS).join(", ")}`, EXIT.usage);
}

function verbsOf(command: Command, path: string): Verb[] {
  const verbs = command.commands.map((sub) => ({ name: sub.name(), about: sub.description() }));
  const options = command.options.flatMap(({ long }) => (long == null ? [] : [long]));
  const own = { path, about: command.description(), options, verbs };
  return [own, ...command.commands.flatMap((sub) => verbsOf(sub, `${path} ${sub.name()}`.trim()))];
}

/** The words that may follow a verb: its subcommands and options, and the global options. */
function words({ verbs, options }: Verb, all: readonly Verb[]): string {
  return [...new Set([...verbs.map(({ name }) => name), ...options, ...all[0]!.options, "--help"])].join(" ");
}

function bash(all: readonly Verb[]): string {
  const cases = all.map((verb) => `    "${verb.path}") words="${words(verb, all)}" ;;`).join("\n");
  return `# quern completion: eval "$(quern completion bash)" in ~/.bashrc
_quern() {
  local verb="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) verb="\${verb:+$verb }$word" ;; esac
  done
  while :; do
    case "$verb" in
${cases}
    esac
    [ -n "$words" ] || [ -z "$verb" ] && break
    case "$verb" in *" "*) verb="\${verb% *}" ;; *) verb="" ;; esac
  done
  local current="\${COMP_WORDS[COMP_CWORD]}"
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current")) ;;
  esac
}
complete -o filenames -F _quern quern
`;
}

/** zsh runs the completion script of bash. */
function zsh(all: readonly Verb[]): string {
  return `# quern completion: eval "$(quern completion zsh)" in ~/.zshrc
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
${bash(all).split("\n").slice(1).join("\n")}`;
}

function fish(all: readonly Verb[]): string {
  const lines = all.flatMap(({ path, verbs, options }) => {
    const parts = path.split(" ").filter(Boolean);
    const seen = parts.map((part) => `__fish_seen_subcommand_from ${part}`);
    const names = verbs.map(({ name }) => name).join(" ");
    const unseen = names === "" ? [] : [`not __fish_seen_subcommand_from ${names}`];
    const when = [...seen, ...unseen].join("; and ");
    const condition = when === "" ? "" : ` -n "${when}"`;
    return [
      ...verbs.map(
        ({ name, about }) => `complete -c quern${condition} -a ${name} -d '${about.replaceAll("'", "\\'")}'`,
      ),
      ...options.map(
        (option) =>
          `complete -c quern${seen.length > 0 ? ` -n "${seen.join("; and ")}"` : ""} -l ${option.slice(2)}`,
      ),
    ];
  });
  return `# quern completion: quern completion fish > ~/.config/fish/completions/quern.fish\n${lines.join("\n")}\n`;
}

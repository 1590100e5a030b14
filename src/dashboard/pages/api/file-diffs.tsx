/** The lines that changed from one version to another, read when somebody asks for them. */
import { useState } from "preact/hooks";
import { counted } from "../../format/numbers.ts";
import { Loaded } from "../../parts/notes.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { withQuery } from "../../server/request.ts";
import { useResource } from "../../server/use-resource.ts";
import type { FileDiff, VersionDiff } from "../../shapes.ts";

interface FileDiffsProps {
  /** Of the API. */
  path: string;
  from: string;
  to: string;
}

export function FileDiffs({ isOpenFirst, ...props }: FileDiffsProps & { isOpenFirst: boolean }) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  return (
    <>
      <button type="button" class="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Hide lines" : "Show changed lines"}
        <span class="hidden"> of {props.to}</span>
      </button>
      {isOpen && <Files {...props} />}
    </>
  );
}

function Files({ path, from, to }: FileDiffsProps) {
  const diff = useResource<VersionDiff>(withQuery(`${path}/diff`, { from, to }));
  return (
    <Loaded resource={diff} lines={3}>
      {({ files, files_left_out }) =>
        files === null ? (
          <p class="quiet">The files were changed on the server since.</p>
        ) : (
          <ul class="stack">
            {files.map((file) => (
              <li key={file.path}>
                <File file={file} />
              </li>
            ))}
            {files_left_out > 0 && <li class="quiet">{counted(files_left_out, "more file")}</li>}
          </ul>
        )
      }
    </Loaded>
  );
}

function File({ file: { path, change, added, removed, text } }: { file: FileDiff }) {
  return (
    <>
      <p>
        <code>{path}</code>{" "}
        {added === null ? (
          <span class="quiet">{change}; it is long, or no text</span>
        ) : (
          <>
            <span class="quiet">{change}</span> <ins>+{added}</ins> <del>−{removed}</del>
          </>
        )}
      </p>
      {text !== null && text !== "" && (
        <div class="pre">
          <Scroll label={`changed lines of ${path}`}>
            <pre>
              {text.split("\n").map((line, at) => (
                <Line key={at} line={line} />
              ))}
            </pre>
          </Scroll>
        </div>
      )}
    </>
  );
}

function Line({ line }: { line: string }) {
  const text = `${line}\n`;
  if (line.startsWith("+")) return <ins>{text}</ins>;
  if (line.startsWith("-")) return <del>{text}</del>;
  return <span class={line.startsWith("@@") ? "quiet" : ""}>{text}</span>;
}

/** A plot whose program is loaded when the first one is drawn: it is as large as all pages together. */
import { useEffect, useState } from "preact/hooks";
import type { Plot, PlotProps } from "./plot.tsx";

let loaded: typeof Plot | undefined;

export function LaterPlot(props: PlotProps) {
  const [Drawn, setDrawn] = useState<typeof Plot | undefined>(() => loaded);
  useEffect(() => {
    if (loaded !== undefined) return;
    import("./plot.tsx").then((module) => {
      loaded = module.Plot;
      setDrawn(() => module.Plot);
    }, reportError);
  }, []);
  if (Drawn !== undefined) return <Drawn {...props} />;
  return (
    <figure class="plot">
      <figcaption>{props.title}</figcaption>
      <div class="plot-area" />
    </figure>
  );
}

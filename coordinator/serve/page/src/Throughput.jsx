// Throughput.jsx: settled items per second since the page was opened, from the states that the coordinator reports.

import { useEffect, useRef, useState } from "preact/hooks";
import { Chart } from "./Chart.jsx";
import { short } from "./format.js";

const most = 600;

export function Throughput({ status, over }) {
  const points = useRef([]);
  const [, redraw] = useState(0);
  useEffect(() => {
    const at = new Date(status.at).getTime() / 1000;
    const last = points.current.at(-1);
    if (!(at > 0) || (last && at <= last[0])) return;
    points.current = [...points.current.slice(1 - most), [at, status.rate]];
    redraw(at);
  }, [status]);
  if (points.current.length < 3 || (over && points.current.every((p) => p[1] === 0))) return null;
  const column = (i) => points.current.map((p) => p[i]);
  return (
    <section class="panel-box" aria-labelledby="throughput">
      <h2 id="throughput">Throughput</h2>
      <Chart height={150} time x={column(0)} series={[{ name: "items/s", values: column(1) }]}
        label={`Items per second since this page was opened: now ${short(status.rate)}`} />
    </section>
  );
}

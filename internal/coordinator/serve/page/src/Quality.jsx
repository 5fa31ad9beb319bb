// Quality.jsx: the figures of the report that show PSNR against solver time, with the Pareto front.

import { useState } from "preact/hooks";
import { address } from "./api.js";
import { Failure, Loading } from "./Message.jsx";
import { useResource } from "./resource.js";

// drawn lists the tasks with such a figure: those with two approaches to one problem.
const drawn = (rows) => {
  const problems = Map.groupBy(rows.filter((r) => r.figures?.psnr && r.figures.seconds), (r) => JSON.stringify([r.task, r.params, r.sigma, r.photons, r.size]));
  return [...new Set([...problems.values()].filter((of) => of.length > 1).map((of) => of[0].task))];
};

function Figures({ path }) {
  const { value, error, reload } = useResource(`${path}/report/summary.json`);
  if (!value) return error ? <Failure error={error} retry={reload} /> : <Loading />;
  const tasks = drawn(value.rows ?? []);
  if (tasks.length === 0) return <p class="muted">The campaign has one method with one number of steps: nothing to compare.</p>;
  return (
    <div class="gallery">{tasks.map((task) => (
      <figure key={task}>
        <img src={address(`${path}/report/figures/psnr_vs_seconds_${task}.svg`)} alt={`PSNR of each method against its solver time, with the Pareto front: ${task}`} />
        <figcaption>{task}</figcaption>
      </figure>
    ))}</div>
  );
}

export function Quality({ path }) {
  const [open, set] = useState(false);
  return (
    <details onToggle={(e) => set(e.currentTarget.open)}>
      <summary>Quality per cost</summary>
      {open && <Figures path={path} />}
    </details>
  );
}

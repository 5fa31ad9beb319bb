// Curves.jsx: the solver's curves of an item, at most three in a chart with a logarithmic axis, and that of an item on a device.

import { Chart } from "./Chart.jsx";
import { ofFleet } from "./events.js";
import { short } from "./format.js";
import { useResource } from "./resource.js";

const labels = { data_norm: "‖y − A(z)‖", primal_norm: "‖x − z‖", dual_norm: "‖u‖" };
const label = (curve) => labels[curve] ?? (curve.startsWith("delta_") ? `‖Δ${curve.slice(6)}‖` : curve);
const titleOf = (curve) => (curve.endsWith("_norm") ? "Norms" : curve.startsWith("delta_") ? "Increments" : "Other curves");

export function Curves({ path }) {
  const { value, error } = useResource(`${path}/trace`);
  if (error) return <p class="muted">{error.status === 404 ? "No solver curves are stored for this item." : error.message}</p>;
  const titles = ["Norms", "Increments", "Other curves"];
  const names = Object.keys(value ?? {}).filter((k) => k !== "timestep" && value[k].some((v) => v > 0)).sort((a, b) => titles.indexOf(titleOf(a)) - titles.indexOf(titleOf(b)));
  if (names.length === 0) return null;
  const steps = value[names[0]].map((_, i) => i + 1);
  const groups = [...Map.groupBy(names, titleOf)].flatMap(([title, members]) =>
    members.flatMap((_, i) => (i % 3 === 0 ? [[title, members.slice(i, i + 3)]] : [])));
  return (
    <div class="charts">{groups.map(([title, members]) => (
      <div key={members[0]} class="chart">
        <h3>{title}</h3>
        <Chart log height={200} xLabel="step" x={steps} series={members.map((m) => ({ name: label(m), values: value[m] }))}
          label={`${title} over ${steps.length} steps: ${members.map((m) => `${label(m)} from ${short(value[m][0])} to ${short(value[m].at(-1))}`).join("; ")}`} />
      </div>
    ))}</div>
  );
}

// Running shows the progress of an item that a worker solves, from its heartbeat.
export function Running({ item }) {
  const { value } = useResource("workers", undefined, ofFleet);
  const worker = value?.workers.find((w) => w.solving?.items.some((i) => i.id === item));
  if (!worker) return null;
  const { step, steps, items } = worker.solving;
  const { data_norm: norms = [], stride } = items.find((i) => i.id === item);
  return (
    <div class="charts"><div class="chart">
      <h3>Step {step} of {steps} on {worker.name}</h3>
      {norms.length > 1 && <Chart log height={200} xLabel="step" x={norms.map((_, i) => (i + 1) * stride)} series={[{ name: labels.data_norm, values: norms }]}
        label={`${labels.data_norm} over ${step} steps: from ${short(norms[0])} to ${short(norms.at(-1))}`} />}
    </div></div>
  );
}

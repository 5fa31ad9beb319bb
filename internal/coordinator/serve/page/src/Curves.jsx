// Curves.jsx: the solver's curves of an item, at most three in a chart with a logarithmic axis, and that of an item on a device.

import { Chart } from "./Chart.jsx";
import { ofFleet } from "./events.js";
import { short } from "./format.js";
import { useResource } from "./resource.js";

const labels = { data_norm: "‖y − A(z)‖", primal_norm: "‖x − z‖", dual_norm: "‖u‖" };
const label = (curve) => labels[curve] ?? (curve.startsWith("delta_") ? `‖Δ${curve.slice(6)}‖` : curve);
const titleOf = (curve) => (curve.endsWith("_norm") ? "Norms" : curve.startsWith("delta_") ? "Increments" : "Other curves");
const titles = ["Norms", "Increments", "Other curves"];

// Charts draws { step, t, series }; t is the prior's time index of each step.
export function Charts({ curves: { step, t, series }, about }) {
  const groups = titles.flatMap((title) => {
    const members = series.filter((s) => titleOf(s.name) === title && s.values.some((v) => v > 0));
    return members.flatMap((_, i) => (i % 3 === 0 ? [[title, members.slice(i, i + 3).map((s) => ({ name: label(s.name), values: s.values }))]] : []));
  });
  return (
    <div class="charts">{groups.map(([title, members]) => (
      <div key={members[0].name} class="chart">
        <h3>{title}</h3>
        <Chart log height={200} xLabel="step" x={step} xText={(i) => `${step[i]} · t = ${t[i]}`} series={members}
          label={`${title} over ${step.at(-1)} steps of ${about}: ${members.map((m) => `${m.name} from ${short(m.values[0])} to ${short(m.values.at(-1))}`).join("; ")}`} />
      </div>
    ))}</div>
  );
}

// Curves reads those of an item.
export function Curves({ path, about }) {
  const { value, error } = useResource(`${path}/trace`);
  if (error) return <p class="muted">{error.status === 404 ? "No solver curves are stored for this item." : error.message}</p>;
  if (!value) return null;
  const { timestep, ...curves } = value;
  return <Charts curves={{ step: timestep.map((_, i) => i + 1), t: timestep, series: Object.entries(curves).map(([name, values]) => ({ name, values })) }} about={about} />;
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

// Throughput.jsx: the items that were finished per minute, from the first result on.

import { name } from "./api.js";
import { Chart } from "./Chart.jsx";
import { ofCampaign } from "./events.js";
import { short } from "./format.js";
import { useResource } from "./resource.js";

export function Throughput({ id, over }) {
  const { value } = useResource(`campaigns/${name(id)}/throughput`, undefined, ofCampaign(id));
  const items = over ? value?.items ?? [] : (value?.items ?? []).slice(0, -1); // the last interval is not over
  if (items.length < 2) return null;
  const from = new Date(value.from).getTime() / 1000;
  const rates = items.map((n) => n * 60 / value.seconds);
  return (
    <section class="panel-box" aria-labelledby="throughput">
      <h2 id="throughput">Throughput</h2>
      <Chart height={150} time x={items.map((_, i) => from + i * value.seconds)} series={[{ name: "items/min", values: rates }]}
        label={`Items per minute, from intervals of ${value.seconds} s: last ${short(rates.at(-1))}`} />
    </section>
  );
}

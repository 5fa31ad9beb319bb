// Throughput.jsx: the items that were finished per minute, from the first result on.

import { name } from "./api.js";
import { Chart } from "./Chart.jsx";
import { ofCampaign } from "./events.js";
import { short } from "./format.js";
import { useResource } from "./resource.js";

// fitting joins intervals of a slow campaign until one has five items in the mean: single items are no rate.
function fitting({ items, seconds }) {
  const total = items.reduce((sum, n) => sum + n, 0);
  const size = Math.max(1, Math.min(Math.ceil(5 * items.length / total), Math.floor(items.length / 2)));
  const joined = Array.from({ length: Math.floor(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size).reduce((sum, n) => sum + n, 0));
  return { items: joined, seconds: seconds * size };
}

export function Throughput({ id, over }) {
  const { value: read } = useResource(`campaigns/${name(id)}/throughput`, undefined, ofCampaign(id));
  const ended = over ? read?.items ?? [] : (read?.items ?? []).slice(0, -1); // the last interval is not over
  if (ended.length < 2 || ended.every((n) => n === 0)) return null;
  const value = fitting({ items: ended, seconds: read.seconds });
  const from = new Date(read.from).getTime() / 1000;
  const rates = value.items.map((n) => n * 60 / value.seconds);
  return (
    <section class="panel-box" aria-labelledby="throughput">
      <h2 id="throughput">Throughput</h2>
      <Chart height={150} time x={value.items.map((_, i) => from + i * value.seconds)} series={[{ name: "items/min", values: rates }]}
        label={`Items per minute, from intervals of ${value.seconds} s: last ${short(rates.at(-1))}`} />
    </section>
  );
}

// Card.jsx: an item of a report: scores, pictures, and on a click curves and all that determines the item.

import { useState } from "preact/hooks";
import { Charts } from "./Curves.jsx";
import { Figures, scored } from "./Figures.jsx";
import { fixed } from "./format.js";
import { approachesOf, curvesOf, metrics } from "./listing.js";
import { Pairs } from "./Pairs.jsx";
import { Picture, titles } from "./Picture.jsx";

const mains = metrics.filter((m) => m.main);
const others = metrics.filter((m) => !m.main);

// works are the counts of a cost, which results of other programs lack.
const works = [
  ["network", "network evaluations"], ["network_backward", "backward passes"], ["operator", "operator calls"],
  ["autoencoder", "autoencoder evaluations"], ["autoencoder_backward", "backward passes through the autoencoder"],
];

function costOf({ how, scores }) {
  const work = works.filter(([field]) => how.cost?.[field] > 0).map(([field, name]) => `; ${how.cost[field]} ${name}`).join("");
  return `${how.steps} steps in ${fixed(scores.seconds, 2)} s${how.provider ? ` on ${how.provider}` : ""}${how.precision ? `, ${how.precision}` : ""}${how.form ? `, form ${how.form}` : ""}${work}`;
}

// settingsOf lists everything that determines an item.
function settingsOf(it) {
  const spaced = (text = "") => text.replaceAll(";", "; ");
  const { residual } = it.scores;
  return [
    ["Task", it.label === it.task ? it.task : `${it.label} (${it.task})`], ["Parameters", spaced(it.params)], ["Noise σ", String(it.sigma)], ["Photons", it.photons],
    ["Size", `${it.how.width} × ${it.how.height} px${it.how.fit ? `, ${it.how.fit}` : ""}`], ["Method", it.method], ["Preset", it.how.preset],
    ["Settings", spaced(it.settings)], ["Prior", it.prior], ["Seed", it.how.seed], ["Run", String(it.run)],
    ...scored(others, it.scores).map((m) => [m.title, `${fixed(it.scores[m.name], m.decimals)} ${m.unit ?? ""}`]),
    ["Residual", residual !== null && `mean((y − A(x))²) − ${it.variance} = ${fixed(residual, 4)}`],
    ["Cost", costOf(it)], ["Warnings", spaced(it.warnings)], ["Item", it.id],
  ];
}

function Curves({ of: it }) {
  const file = <a href={it.trace}>trace.json</a>;
  const curves = curvesOf(it.row);
  if (!curves) return <p class="muted">{it.trace ? <>The curves are in {file}; this page holds those of a selection of items.</> : "No solver curves."}</p>;
  const [drawn, last] = [curves.step.length, curves.step.at(-1)];
  return <><Charts curves={curves} about={it.name} />{last > drawn && <p class="muted">Drawn at {drawn} of {last} steps; {file} has all.</p>}</>;
}

export function Card({ of: it, open }) {
  const [detailed, setDetailed] = useState(false);
  const about = `${it.name}, ${it.label}`;
  const shown = [...Object.entries(titles).map(([kind, title]) => ({ kind, title, path: it[kind] })), ...it.further.map((p) => ({ kind: "further", ...p }))];
  const siblings = approachesOf(it.row).length;
  return (
    <article class="item" aria-labelledby={`name-${it.row}`}>
      <header>
        <h3 id={`name-${it.row}`}>{it.name}{it.warnings && <span class="flag">{it.warnings.replaceAll(";", ", ")}</span>}</h3>
        <p class="muted">{[it.label, it.variant, it.method, `run ${it.run}`].filter(Boolean).join(" · ")}</p>
      </header>
      <Figures metrics={mains} scores={it.scores} variance={it.variance} />
      <div class="pictures">{shown.map(({ kind, title, path }) => (
        <figure key={title}>
          {path === null ? <Picture remark="none" /> : (
            <button type="button" class="enlarge" data-kind={kind} aria-label={`Enlarge and compare: ${title}, ${about}`} onClick={open}><Picture src={path} alt={`${title}: ${about}`} /></button>
          )}
          <figcaption>{title}</figcaption>
        </figure>
      ))}</div>
      <div class="more">
        <details onToggle={(e) => setDetailed(e.currentTarget.open)}>
          <summary>Curves and settings</summary>
          {detailed && <div class="detail"><Curves of={it} /><Pairs kind="settings" of={settingsOf(it)} /></div>}
        </details>
        <button type="button" class="compare-button" onClick={open}>{siblings > 1 ? `Compare ${siblings} restorations` : "Side by side"}</button>
      </div>
    </article>
  );
}

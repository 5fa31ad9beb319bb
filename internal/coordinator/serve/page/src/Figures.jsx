// Figures.jsx: the scores of an item, the residual last.

import { fixed, short, signed } from "./format.js";
import { Pairs } from "./Pairs.jsx";

// maxRatio is the ratio of mean square residual and variance of the noise above which an item is marked.
const maxRatio = 1.5;

const measured = (text, unit) => <>{text}{unit && <span class="unit"> {unit}</span>}</>;

export const scored = (metrics, scores) => metrics.filter((m) => m.name !== "residual" && (scores[m.name] ?? null) !== null);

// residualOf is the ratio of the residual to the variance of the noise, where that is known.
function residualOf({ residual, residual_ratio: ratio = null }, variance) {
  if (ratio === null) return ["Residual", short(residual)];
  const misfit = ratio > maxRatio;
  const flag = misfit && <span class="flag" role="img" aria-label={`above ${maxRatio}`}>!</span>;
  return ["Residual", <>{measured(fixed(ratio, 2), variance)}{flag}</>, misfit ? "loss" : null,
    `mean((y − A(x))²) over ${variance}${misfit ? `; above ${maxRatio}: the image does not explain its measurement` : ""}`];
}

// Figures shows the scores of these metrics. A score of the measurement itself has the prefix baseline_.
export function Figures({ metrics, scores, variance, seconds }) {
  const shown = scored(metrics, scores).flatMap((m) => {
    const score = scores[m.name];
    const before = scores[`baseline_${m.name}`] ?? null;
    const own = [m.title, measured(fixed(score, m.decimals), m.unit)];
    if (before === null) return [own];
    const worse = m.better === "lower" ? score > before : score < before;
    return [own, ["Degraded", measured(fixed(before, m.decimals), m.unit), "before"],
      ["Gain", measured(signed(score - before, m.decimals), m.unit), worse ? "loss" : "win"]];
  });
  return <Pairs kind="figures" of={[...shown, ["Solver", seconds && `${fixed(seconds, 2)} s`], residualOf(scores, variance)]} />;
}

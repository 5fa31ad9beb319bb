// Progress.jsx: the states of a campaign's items as one bar, and its phase as a badge.

import { count } from "./format.js";

const states = ["done", "failed", "dead", "running", "cancelled"];

// The bar is an SVG, because its widths are data: the policy of the page allows no style attributes.
export function Progress({ counts }) {
  let x = 0;
  const parts = states.map((state) => {
    const width = counts.items > 0 ? 100 * counts[state] / counts.items : 0;
    const part = <rect key={state} class={state} x={x} y="0" width={width} height="8" />;
    x += width;
    return part;
  });
  const text = `${count(counts.done)} of ${count(counts.items)} done, ${count(counts.failed)} failed, ${count(counts.dead)} dead`;
  return <svg class="progress" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={text}>{parts}</svg>;
}

export function Phase({ campaign }) {
  const { phase, wanted } = campaign;
  const asked = { pause: "paused", cancel: "cancelled", cancel_now: "cancelled" }[wanted];
  const ended = ["finished", "cancelled", "rejected"].includes(phase);
  return <span class={`badge phase ${phase}`}>{phase}{asked && asked !== phase && !ended ? ` → ${asked}` : ""}</span>;
}

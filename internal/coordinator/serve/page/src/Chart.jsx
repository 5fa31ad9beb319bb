// Chart.jsx: curves over one axis, by uPlot. Colours come from the style sheet.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { short } from "./format.js";

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("sv");
const isDecade = (v) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6;
const dashes = [undefined, [6, 3], [2, 2.5]];

function options({ time, log, series, height, xLabel, xText }, width) {
  const style = getComputedStyle(document.documentElement);
  const color = (variable) => style.getPropertyValue(variable).trim();
  const axis = { stroke: color("--muted"), font: "11px system-ui", grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
  const finite = (_, ticks) => ticks.map((v) => (v === null ? "" : short(v)));
  return {
    width, height, padding: [8, 12, 0, 0], cursor: { drag: { x: true, y: false }, points: { size: 7 } },
    scales: { x: { time: !!time }, y: { distr: log ? 3 : 1, range: log ? undefined : (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1] } },
    axes: [{ ...axis, size: 34, space: time ? 90 : 50, values: time ? (_, ticks) => ticks.map((t) => clock(t)) : undefined, label: xLabel, labelSize: 16, labelFont: "11px system-ui" }, { ...axis, size: 54, values: finite, grid: { ...axis.grid, filter: (_, ticks) => (log ? ticks.map((v) => (isDecade(v) ? v : null)) : ticks) } }],
    series: [{ label: xLabel ?? "time", value: (_, v, __, i) => (v === null ? "–" : xText?.(i) ?? (time ? clock(v) : short(v))) }, ...series.map((s, i) => ({
      label: s.name, stroke: color(`--c${i % 3}`), width: 1.6, dash: dashes[i % 3], points: { show: false }, value: (_, v) => short(v),
    }))],
    legend: { live: true },
  };
}

export function Chart(props) {
  const { x, series, label, height, log } = props;
  const box = useRef(null);
  const plot = useRef(null);
  const names = series.map((s) => s.name).join();
  // A logarithm has no values at and below zero.
  const values = [x, ...series.map((s) => (log ? s.values.map((v) => (v > 0 ? v : null)) : s.values))];
  useEffect(() => {
    const node = box.current; // it outlives the reference at the end
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(props, Math.max(200, node.clientWidth)), values, node);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(200, node.clientWidth), height }));
    resized.observe(node);
    scheme.addEventListener("change", draw);
    addEventListener("theme", draw);
    return () => {
      resized.disconnect();
      scheme.removeEventListener("change", draw);
      removeEventListener("theme", draw);
      plot.current.destroy();
      plot.current = null;
    };
  }, [names, log, height]);
  useEffect(() => { plot.current?.setData(values); });
  const show = (at) => plot.current.setCursor({ left: at === null ? -10 : plot.current.valToPos(x[at], "x"), top: at === null ? -10 : 0 });
  const keys = (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    show(Math.max(0, Math.min(x.length - 1, (plot.current.cursor.idx ?? x.length - 1) + move)));
  };
  return <div class="plot" role="img" aria-label={label} ref={box} tabIndex={0} onKeyDown={keys} onBlur={() => show(null)} />;
}

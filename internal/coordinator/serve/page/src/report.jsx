// report.jsx: the images of a report, below the tables and figures that its page has without JavaScript.

import { render } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Card } from "./Card.jsx";
import { Dialog } from "./Dialog.jsx";
import { fixed } from "./format.js";
import { approachesOf, idOf, itemOf, measurementOf, methods, orders, rowOf, search, tasks, total, variants } from "./listing.js";
import { makeSortable } from "./tables.js";
import { amend, useRoute } from "./route.js";
import { Choice, Search, Toolbar } from "./Toolbar.jsx";
import { Viewer } from "./Viewer.jsx";

const cardsAtOnce = 24;
const maxPanels = 48;

// titleOf names what distinguishes a restoration from the others of its measurement.
function titleOf(it, all) {
  const differ = (field) => all.some((other) => other[field] !== it[field]);
  return [it.method, differ("variant") && it.variant, differ("run") && `run ${it.run}`].filter(Boolean).join(", ");
}

const textOf = ({ scores: { psnr, ssim }, ratio, variance }) => [
  psnr !== null && `${fixed(psnr, 2)} dB`, ssim !== null && `SSIM ${fixed(ssim, 3)}`, ratio !== null && `residual ${fixed(ratio, 2)} ${variance}`,
].filter(Boolean).join(" · ");

// panelsOf are the pictures of a measurement and its restorations.
function panelsOf(it, all) {
  const { truth, measurement, scores: { baseline_psnr: baseline } } = it;
  return [
    truth && { title: "Truth", src: truth }, measurement && { title: "Measurement", src: measurement, text: baseline !== null && `${fixed(baseline, 2)} dB` },
    ...all.flatMap((r) => [
      { title: titleOf(r, all), src: r.restored, text: textOf(r), restored: true, current: r.row === it.row && all.length > 1 },
      ...r.further.map((p) => ({ title: p.title, src: p.path })),
    ]),
  ].filter(Boolean);
}

// Measurement shows all restorations of one; the keys step through the matches with other ones.
function Measurement({ row, matches }) {
  const it = itemOf(row);
  const rows = approachesOf(row);
  const to = (by) => {
    const n = matches.length;
    const from = matches.indexOf(row);
    const order = matches.map((_, i) => matches[(from + by * (i + 1) + n * (i + 1)) % n]);
    const next = order.find((r) => measurementOf(r) !== measurementOf(row));
    return next === undefined ? undefined : () => amend({ item: idOf(next) });
  };
  const about = [it.label, it.params?.replaceAll(";", ", "), `σ ${it.sigma}`, it.photons && `${it.photons} photons`].filter(Boolean).join(" · ");
  return (
    <Dialog title={it.name} about={about} previous={to(-1)} next={to(1)} close={() => amend({ item: "" })}>
      <Viewer subject={measurementOf(row)} panels={panelsOf(it, rows.slice(0, maxPanels).map(itemOf))} pictures={it} />
      {rows.length > maxPanels && <p class="muted hint">The first {maxPanels} of {rows.length} restorations are shown.</p>}
    </Dialog>
  );
}

// useMore returns how many of some values are shown, and a function that shows more of them.
function useMore(of) {
  const [state, set] = useState({});
  const shown = state.of === of ? state.shown : cardsAtOnce;
  return [shown, () => set({ of, shown: shown + cardsAtOnce })];
}

// useMatches returns the rows that match the filters of the address.
function useMatches() {
  const { query } = useRoute();
  const { q, order } = query;
  const known = (name, options) => (options.some(([v]) => v === query[name]) ? query[name] : "");
  const [task, method, variant] = [known("task", tasks), known("method", methods), known("variant", variants)];
  const matches = useMemo(() => search({ q, task, method, variant, order }), [q, task, method, variant, order]);
  return { matches, q, task, method, variant, order, open: rowOf(query.item) };
}

function Images() {
  const { matches, q, task, method, variant, order } = useMatches();
  const [shown, more] = useMore(matches);
  const cards = useRef(null);
  const next = useRef(null); // the number of the card that gets the focus
  useLayoutEffect(() => {
    if (next.current !== null) cards.current.children[next.current].querySelector(".enlarge")?.focus();
    next.current = null;
  });
  const count = matches.length === total ? `${total} items` : `${matches.length} of ${total} items match`;
  return (
    <>
      <Toolbar>
        <Search name="q" label="Image" value={q} />
        <Choice name="task" label="Task" value={task} options={tasks} />
        <Choice name="method" label="Method" value={method} options={methods} />
        {variants.length > 0 && <Choice name="variant" label="Settings" value={variant} options={variants} />}
        <Choice name="order" label="Order" value={order} none="as in the table" options={orders} />
        <output>{shown < matches.length ? `${count}, ${shown} shown` : count}</output>
      </Toolbar>
      <div id="cards" ref={cards}>
        {matches.slice(0, shown).map((row) => <Card key={row} of={itemOf(row)} open={() => amend({ item: idOf(row) })} />)}
        {matches.length === 0 && <p class="muted">No item matches.</p>}
      </div>
      <button type="button" id="more" hidden={shown >= matches.length} onClick={() => { next.current = shown; more(); }}>Show more</button>
    </>
  );
}

// Opened is the measurement that the address names, over the page.
function Opened() {
  const { matches, open } = useMatches();
  return open >= 0 && <Measurement row={open} matches={matches} />;
}

// connectWipe wipes the degraded picture over a restored one, from the left to the pointer.
function connectWipe(pane) {
  const wipe = (share) => {
    pane.classList.toggle("on", share > 0);
    pane.style.setProperty("--cut", `${share}%`);
  };
  pane.addEventListener("pointermove", ({ clientX }) => {
    const { left, width } = pane.getBoundingClientRect();
    wipe(Math.max(0, Math.min(100, (clientX - left) / width * 100)));
  });
  pane.addEventListener("pointerleave", () => wipe(0));
}

const root = document.documentElement;
root.classList.add("js");
const theme = document.getElementById("theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  root.dataset.theme = getComputedStyle(root).colorScheme === "dark" || !root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches ? "light" : "dark";
  dispatchEvent(new Event("theme"));
});
document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll(".wipe").forEach(connectWipe);
document.querySelectorAll("a[data-item]").forEach((a) => a.addEventListener("click", (event) => {
  if (rowOf(a.dataset.item) < 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  amend({ item: a.dataset.item });
}));
if (total > 0) {
  render(<Images />, document.getElementById("images"));
  render(<Opened />, document.getElementById("viewer"));
}
addEventListener("load", () => {
  root.dataset.imagesLoaded ??= 0;
  root.dataset.imagesBroken ??= 0;
  root.dataset.ready = "1";
});

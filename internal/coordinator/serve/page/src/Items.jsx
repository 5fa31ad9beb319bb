// Items.jsx: the items of a campaign, filtered and sorted by the server, page by page. Only the rows near the window are in the document.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { address, get, name } from "./api.js";
import { ofCampaign, useEvents } from "./events.js";
import { count, duration, fixed, plural, signed } from "./format.js";
import { Failure, Message } from "./Message.jsx";
import { Picture, pictureOf, titles } from "./Picture.jsx";
import { amend } from "./route.js";
import { Choice, Search, Toolbar } from "./Toolbar.jsx";

const page = 100;
// The orders and codes of the API.
const states = ["done", "failed", "dead", "pending"];
const warnings = ["any", "residual", "sigma", "worse", "flat", "steps"];
const orders = [["name", "name"], ["psnr", "worst PSNR"], ["-psnr", "best PSNR"], ["-seconds", "slowest"], ["-residual", "largest residual"]];
const filters = ["task", "method", "state", "warning", "name", "sort"];

const filtersOf = (query) => Object.fromEntries(filters.map((f) => [f, query[f]]));

// usePages reads the items that match, a page at a time. It reads the loaded ones again when the campaign moves.
function usePages(id, query) {
  const wanted = filtersOf(query);
  const key = JSON.stringify([id, wanted]);
  const [state, set] = useState({ items: [] });
  const reading = useRef(null);
  const read = async (cursor, before) => {
    reading.current?.abort();
    const aborted = new AbortController();
    reading.current = aborted;
    try {
      let items = before;
      let next = cursor;
      let total = 0;
      const least = cursor ? before.length + 1 : Math.max(1, state.key === key ? state.items.length : 0);
      do {
        const answer = await get(`campaigns/${name(id)}/items`, { ...wanted, cursor: next, limit: page }, aborted.signal);
        items = items.concat(answer.items);
        next = answer.next;
        total = answer.total;
      } while (next && items.length < least);
      set({ key, items, next, total });
    } catch (error) {
      if (error.name !== "AbortError") set((last) => ({ ...last, key, error }));
    } finally {
      if (reading.current === aborted) reading.current = null;
    }
  };
  useEffect(() => {
    read(undefined, []);
    return () => reading.current?.abort();
  }, [key]);
  const timer = useRef(null);
  const latest = useRef(read); // the filters may change before the timer fires
  latest.current = read;
  useEffect(() => () => clearTimeout(timer.current), []);
  useEvents((event) => {
    if (timer.current !== null || (event.kind !== "again" && !ofCampaign(id)(event))) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      if (!reading.current) latest.current(undefined, []);
    }, 1500);
  });
  const more = () => { if (state.next && !reading.current) read(state.next, state.items); };
  return { ...state, loaded: state.key === key, more };
}

const height = () => (matchMedia("(max-width: 640px)").matches ? 168 : 84);

function Row({ id, item, top, open }) {
  const m = item.metrics ?? {};
  const gain = m.psnr !== undefined && m.baseline_psnr !== undefined ? m.psnr - m.baseline_psnr : undefined;
  const place = (node) => { if (node) node.style.top = `${top}px`; };
  return (
    <li class="row" ref={place}>
      <button type="button" class="open" onClick={() => open(item.id)}>
        <span class="thumbs">{["measurement", "restored", "truth"].map((kind) => <Picture key={kind} src={item.state === "done" && pictureOf(id, item.id, kind, 96)} remark={titles[kind]} alt="" title={titles[kind]} />)}</span>
        <span class="what"><strong>{item.name}</strong><span class="half">{item.task} · {item.method} · run {item.run}</span>
          {item.reason && <span class="half bad">{item.reason}</span>}</span>
        <span class="state"><span class={`badge phase ${item.state}`}>{item.state}</span>{(item.warnings ?? []).map((w) => <span key={w} class="flag">{w}</span>)}</span>
        <span class="num"><strong>{m.psnr === undefined ? "" : `${fixed(m.psnr, 2)} dB`}</strong>
          {gain !== undefined && <span class={gain < 0 ? "half loss" : "half win"}>{signed(gain, 2)} dB</span>}</span>
        <span class="num muted">{item.seconds ? duration(item.seconds) : ""}<span class="half">{item.worker}</span></span>
      </button>
    </li>
  );
}

// useWindow returns the numbers of the first and the last row near the window.
function useWindow(list, size, total) {
  const [range, set] = useState([0, 20]);
  useLayoutEffect(() => {
    const measure = () => {
      const from = -list.current.getBoundingClientRect().top;
      set([Math.max(0, Math.floor(from / size) - 8), Math.ceil((from + innerHeight) / size) + 8]);
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [size, total]);
  return range;
}

// Download offers the files of the first done items in the shown order.
function Download({ id, wanted }) {
  const [limit, set] = useState(10);
  return (
    <>
      <label>First <select name="first" value={limit} onChange={(e) => set(e.target.value)}>{[10, 100, 1000].map((n) => <option key={n}>{n}</option>)}</select></label>
      <a class="button" download href={address(`campaigns/${name(id)}/archive`, { ...wanted, state: "done", limit })}>Download</a>
    </>
  );
}

export function Items({ id, query, status, listed }) {
  const { items, total, error, loaded, more } = usePages(id, query);
  const list = useRef(null);
  const size = height();
  const [from, to] = useWindow(list, size, items.length);
  useEffect(() => listed(items.map((i) => i.id)), [items]);
  useEffect(() => { if (to >= items.length - 10) more(); });
  useLayoutEffect(() => { list.current.style.height = `${items.length * size}px`; }, [items.length, size]);
  const values = (field) => [...new Set([...items.map((i) => i[field]), query[field]].filter(Boolean))].sort();
  const choice = (name, label, options, none) => <Choice name={name} label={label} value={query[name]} options={options} none={none} />;
  const filtered = filters.some((f) => f !== "sort" && query[f]);
  return (
    <section aria-labelledby="items">
      <h2 id="items">Items</h2>
      <Toolbar>
        <Search name="name" label="Image" value={query.name} />
        {choice("task", "Task", values("task"))}
        {choice("method", "Method", values("method"))}
        {choice("state", "State", states)}
        {choice("warning", "Warning", warnings)}
        {choice("sort", "Sort", orders, "order of the dataset")}
        {status.counts.done > 0 && <Download id={id} wanted={filtersOf(query)} />}
        <output>{loaded ? plural(total ?? 0, "item") : "reading"}</output>
      </Toolbar>
      {error && <Failure error={error} />}
      <ol class="rows" ref={list}>
        {items.slice(from, to).map((item, i) => <Row key={item.id} id={id} item={item} top={(from + i) * size} open={(opened) => amend({ item: opened })} />)}
      </ol>
      {loaded && !error && items.length === 0 && (filtered
        ? <Message title="No item matches"><button type="button" class="link" onClick={() => amend(Object.fromEntries(filters.map((f) => [f, ""])))}>Clear the filters</button></Message>
        : <Message title="No items yet">{status.problem || "The coordinator reads the dataset; the first items appear here."} ({count(status.counts.items)} so far)</Message>)}
    </section>
  );
}

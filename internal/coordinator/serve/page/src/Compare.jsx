// Compare.jsx: two campaigns, or two selections of one, paired by measurement. The server computes what ddiff compare prints.

import { useMemo } from "preact/hooks";
import { count, fixed, plural, signed } from "./format.js";
import { Failure, Loading, Message } from "./Message.jsx";
import { useResource } from "./resource.js";
import { amend, link } from "./route.js";
import { Choice, Toolbar } from "./Toolbar.jsx";

// digits are the decimals of ddiff compare: differences on a scale of 1 are small.
const digits = (metric) => (metric?.unit ? metric.decimals : Math.max(4, metric?.decimals ?? 4));

// verdict is the class of a mean difference. Scores whose best value is zero have none: the mean of distances on both sides of it says nothing.
function verdict(difference, metric) {
  const gain = ({ higher: 1, lower: -1 }[metric?.better] ?? 0) * (difference?.mean ?? 0);
  if (gain === 0) return "num";
  return gain < 0 ? "num loss" : "num win";
}

// problem lists the noise, the parameters and the size of a row.
const problem = (r) => [`σ ${r.sigma}`, r.photons && `${r.photons} photons`, ...(r.params ?? "").split(";"), r.size].filter(Boolean).join(", ");

// interval is a mean with its 95 % interval.
function Interval({ of: e, sign, metric }) {
  if (!e || e.mean === undefined || e.mean === null) return "–";
  return <>{(sign ? signed : fixed)(e.mean, digits(metric))}{e.half_width !== undefined && <span class="half">± {fixed(e.half_width, digits(metric))}</span>}</>;
}

// onlyIn lists the settings of an approach that the other one has not.
const onlyIn = (x, y) => {
  const other = new Set((y?.settings ?? "").split(";"));
  return (x?.settings ?? "").split(";").filter((s) => s !== "" && !other.has(s)).join(", ");
};

function Rows({ versus, metric }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Comparison by problem">
      <table>
        <caption>Mean of A − B over images with its 95 % interval; p by Wilcoxon's signed-rank test, with Holm's correction.</caption>
        <thead><tr><th scope="col">Problem</th><th scope="col">A</th><th scope="col">B</th><th scope="col" class="num">Mean A</th><th scope="col" class="num">Mean B</th><th scope="col" class="num">A − B</th><th scope="col" class="num">p</th></tr></thead>
        <tbody>{versus.rows.map((r, i) => (
          <tr key={i}>
            <th scope="row">{r.task}{r.suspect && " †"}<span class="half">{problem(r)}</span></th>
            <td>{r.a.method}<span class="half">{onlyIn(r.a, r.b)}</span></td><td>{r.b.method}<span class="half">{onlyIn(r.b, r.a)}</span></td>
            <td class="num"><Interval of={r.mean_a} metric={metric} /></td><td class="num"><Interval of={r.mean_b} metric={metric} /></td>
            <td class={verdict(r.difference, metric)}><Interval of={r.difference} sign metric={metric} /></td>
            <td class="num">{r.p_holm === undefined || r.suspect ? "–" : r.p_holm.toPrecision(2)}</td>
          </tr>
        ))}</tbody>
      </table>
      {versus.rows.some((r) => r.suspect) && <p class="muted">† At least half of the items of a side have warnings: the figures may be wrong, and no p value is given.</p>}
    </div>
  );
}

function Largest({ images, a, b, metric }) {
  const shown = images.toSorted((x, y) => Math.abs(y.value_a - y.value_b) - Math.abs(x.value_a - x.value_b)).slice(0, 12);
  return (
    <section aria-labelledby="largest">
      <h2 id="largest">Largest differences</h2>
      <table class="list">
        <thead><tr><th scope="col">Image</th><th scope="col" class="num">A</th><th scope="col" class="num">B</th><th scope="col" class="num">A − B</th></tr></thead>
        <tbody>{shown.map((d) => (
          <tr key={d.item_a + d.item_b}>
            <th scope="row">{d.image}<span class="half">{d.task}</span></th>
            <td class="num" data-label="A"><a href={link(["campaigns", a], { item: d.item_a })}>{fixed(d.value_a, digits(metric))}</a></td>
            <td class="num" data-label="B"><a href={link(["campaigns", b], { item: d.item_b })}>{fixed(d.value_b, digits(metric))}</a></td>
            <td class="num" data-label="A − B">{signed(d.value_a - d.value_b, digits(metric))}</td>
          </tr>
        ))}</tbody>
      </table>
    </section>
  );
}

// conditions divides a text such as task=hdr; method=ddiff.
const conditions = (text) => (text ?? "").split(";").map((c) => c.trim()).filter(Boolean);

// suggested are conditions that results of campaigns may have.
const suggested = (campaigns) => [...new Set(campaigns.flatMap(({ spec }) => [
  ...(spec.methods ?? []).map((m) => `method=${m}`), ...(spec.tasks ?? []).map((t) => `task=${t.name ?? t}`),
]))].sort();

export function Compare({ query }) {
  const { a, b, metric, where, where_a, where_b } = query;
  const list = useResource("campaigns");
  const metrics = useResource("metrics").value ?? [];
  const shown = metrics.find((m) => m.name === (metric ?? "psnr"));
  const both = a && b && (a !== b || (where_a ?? "") !== (where_b ?? ""));
  const wanted = { a, b, metric, where: conditions(where), where_a: conditions(where_a), where_b: conditions(where_b) };
  const { value, error, reload } = useResource(both ? "compare" : null, wanted);
  const names = useMemo(() => (list.value?.campaigns ?? []).map((c) => c.campaign.id).reverse(), [list.value]);
  const choice = (side) => <Choice name={side} label={side.toUpperCase()} value={query[side]} none="choose" options={[...new Set([...names, query[side]].filter(Boolean))]} />;
  const condition = (field, label) => (
    <label>{label} <input name={field} list="conditions" placeholder="method=ddiff; task=hdr" value={query[field] ?? ""} onChange={(e) => amend({ [field]: e.target.value })} /></label>
  );
  const known = suggested((list.value?.campaigns ?? []).map((c) => c.campaign).filter((c) => [a, b].includes(c.id)));
  let body = <Message title="Choose two campaigns, or two conditions of one">Both sides must have restored the same measurements: the same images, tasks, noise and seed.</Message>;
  if (both && error && !value) body = <Failure error={error} retry={reload} />;
  else if (both && !value) body = <Loading />;
  else if (both) {
    body = (
      <>
        <p>{plural(value.images.length, "measurement")} in both.
          {value.only_a && ` ${count(value.only_a.length)} problems in A alone.`}{value.only_b && ` ${count(value.only_b.length)} problems in B alone.`}</p>
        <Rows versus={value} metric={shown} />
        {(value.unequal ?? []).map((u) => <p key={u.field} class="notice">{u.field} differs: {(u.a ?? []).join(", ")} in A, {(u.b ?? []).join(", ")} in B.</p>)}
        <Largest images={value.images} a={a} b={b} metric={shown} />
      </>
    );
  }
  return (
    <>
      <div class="head"><h1>Compare</h1></div>
      <Toolbar>
        {choice("a")}{condition("where_a", "Only in A")}{choice("b")}{condition("where_b", "Only in B")}{condition("where", "Only in both")}
        <datalist id="conditions">{known.map((c) => <option key={c} value={c} />)}</datalist>
        <label>Metric <select value={metric ?? "psnr"} onChange={(e) => amend({ metric: e.target.value })}>{metrics.map((m) => <option key={m.name} value={m.name}>{m.title}</option>)}</select></label>
      </Toolbar>
      {body}
    </>
  );
}

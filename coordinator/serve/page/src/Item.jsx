// Item.jsx: one item in a dialog: pictures, curves, settings, attempts and logs. n and p step through the list.

import { useEffect, useRef } from "preact/hooks";
import { useVerb } from "./Actions.jsx";
import { address, name } from "./api.js";
import { Curves, Running } from "./Curves.jsx";
import { ofCampaign } from "./events.js";
import { fixed, moment, short } from "./format.js";
import { Failure, Loading } from "./Message.jsx";
import { useResource } from "./resource.js";
import { amend } from "./route.js";
import { Viewer } from "./Viewer.jsx";

function Figures({ metrics: scores = {}, seconds }) {
  const { value: metrics } = useResource("metrics");
  const shown = [];
  for (const m of metrics ?? []) {
    for (const [key, title] of [[m.name, m.title], [`baseline_${m.name}`, `${m.title} of the measurement`]]) {
      if (scores[key] !== undefined) shown.push([title, m.better === "closer_to_zero" ? short(scores[key]) : `${fixed(scores[key], m.decimals)} ${m.unit ?? ""}`]);
    }
  }
  if (seconds) shown.push(["Solver", `${fixed(seconds, 2)} s`]);
  return <dl class="figures">{shown.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>;
}

function Settings({ values }) {
  const text = (v) => (typeof v === "object" ? Object.entries(v).map(([k, x]) => `${k}=${typeof x === "object" ? JSON.stringify(x) : x}`).join("; ") : String(v));
  return (
    <dl class="settings">{Object.entries(values).filter(([, v]) => v !== null && v !== "" && text(v) !== "").map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{text(v)}</dd></div>)}</dl>
  );
}

function Attempts({ path }) {
  const { value, error } = useResource(`${path}/logs`);
  if (error) return <p class="muted">{error.message}</p>;
  if (!value) return <Loading />;
  if (value.attempts.length === 0) return <p class="muted">No attempt is recorded.</p>;
  return value.attempts.map((a, i) => (
    <div key={i} class="attempt">
      <p><strong>Attempt {a.attempt}</strong> <span class={`badge phase ${a.outcome}`}>{a.outcome}</span> <span class="muted">{a.worker} · {moment(a.at)}</span></p>
      {a.reason && <p class="bad">{a.reason}</p>}
      {(a.lines ?? []).length > 0 && <pre class="log" tabIndex={0}>{a.lines.join("\n")}</pre>}
    </div>
  ));
}

// States shows the contact sheet of an item of a campaign with keep_states.
function States({ path, after }) {
  return (
    <figure class="states">
      <figcaption><strong>x_t</strong> after the steps {after}</figcaption>
      <img src={address(`${path}/files/states.png`)} alt={`x_t after the steps ${after}, row by row`} />
    </figure>
  );
}

export function Item({ id, item, listed, may, done }) {
  const dialog = useRef(null);
  const path = `campaigns/${name(id)}/items/${name(item)}`;
  const { value, error, reload } = useResource(path, undefined, ofCampaign(id));
  const [run, busy, failed] = useVerb(id, () => { reload(); done?.(); });
  useEffect(() => { if (!dialog.current.open) dialog.current.showModal(); }, []);
  const step = (by) => {
    const at = listed.indexOf(item);
    const to = listed[at + by];
    if (at >= 0 && to) amend({ item: to });
  };
  const close = () => amend({ item: "" });
  const keys = (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { n: 1, p: -1 }[event.key];
    if (by) step(by);
  };
  const it = value;
  const retriable = it && (it.state === "failed" || it.state === "dead");
  return (
    <dialog ref={dialog} class="viewer" aria-labelledby="item-title" onKeyDown={keys} onClose={close}>
      <header>
        <div>
          <h2 id="item-title">{it?.name ?? item}</h2>
          {it && <p class="muted">{it.task} · {it.method} · run {it.run} · <span class={`badge phase ${it.state}`}>{it.state}</span></p>}
        </div>
        <div class="actions">
          {may && retriable && <button type="button" disabled={busy} onClick={() => run("retry", { body: it.state === "dead" ? { items: [it.id] } : { outcomes: ["failed"], where: it.reason } })}>Retry</button>}
          <button type="button" onClick={() => step(-1)} disabled={listed.indexOf(item) < 1}>Previous</button>
          <button type="button" onClick={() => step(1)} disabled={listed.indexOf(item) < 0 || listed.indexOf(item) === listed.length - 1}>Next</button>
          <button type="button" onClick={() => dialog.current.close()}>Close</button>
        </div>
      </header>
      {failed && <p role="alert" class="bad">{failed.message}</p>}
      {!value && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {value && (
        <>
          {it.reason && <p class="notice" role="status">{it.reason}</p>}
          {(value.result?.warnings ?? []).map((w) => <p key={w.code} class="notice">{w.text}</p>)}
          {it.state === "done" && <Viewer id={id} item={it} />}
          <Figures metrics={it.metrics} seconds={it.seconds} />
          {it.state === "done" && <Curves path={path} />}
          {value.files?.some((f) => f.name === "states.png") && <States path={path} after={value.settings.keep_states.replaceAll(",", ", ")} />}
          {it.state === "pending" && <Running item={it.id} />}
          <details><summary>Settings</summary><Settings values={value.settings ?? {}} /></details>
          <details><summary>Attempts and log</summary><Attempts path={path} /></details>
          {(value.files ?? []).length > 0 && <p class="links"><span>Files</span>{value.files.map((f) => <a key={f.name} href={address(`${path}/files/${name(f.name)}`)}>{f.name}</a>)}</p>}
        </>
      )}
    </dialog>
  );
}

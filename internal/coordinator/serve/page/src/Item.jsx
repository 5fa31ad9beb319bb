// Item.jsx: one item in a dialog: pictures, curves, settings, attempts and logs.

import { useVerb } from "./Actions.jsx";
import { address, name } from "./api.js";
import { Curves, Running } from "./Curves.jsx";
import { Dialog } from "./Dialog.jsx";
import { ofCampaign } from "./events.js";
import { Figures } from "./Figures.jsx";
import { moment } from "./format.js";
import { Failure, Loading } from "./Message.jsx";
import { Pairs } from "./Pairs.jsx";
import { pictureOf, titles } from "./Picture.jsx";
import { useResource } from "./resource.js";
import { amend } from "./route.js";
import { Viewer } from "./Viewer.jsx";

const text = (v) => (typeof v === "object" && v !== null ? Object.entries(v).map(([k, x]) => `${k}=${typeof x === "object" ? JSON.stringify(x) : x}`).join("; ") : String(v ?? ""));

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

// panelsOf are the pictures among the files of an item.
const panelsOf = (id, item, files) => Object.entries(titles).filter(([kind]) => files.some((f) => f.name === `${kind}.png`))
  .map(([kind, title]) => ({ kind, title, src: pictureOf(id, item, kind), restored: kind === "restored" }));

export function Item({ id, item, listed, may, done }) {
  const path = `campaigns/${name(id)}/items/${name(item)}`;
  const { value, error, reload } = useResource(path, undefined, ofCampaign(id));
  const { value: metrics = [] } = useResource("metrics");
  const [run, busy, failed] = useVerb(id, () => { reload(); done?.(); });
  const at = listed.indexOf(item);
  const to = (other) => (at >= 0 && other ? () => amend({ item: other }) : undefined);
  const it = value;
  const retriable = it && (it.state === "failed" || it.state === "dead");
  const files = value?.files ?? [];
  const panels = panelsOf(id, item, files);
  return (
    <Dialog title={it?.name ?? item} about={it && <>{it.task} · {it.method} · run {it.run} · <span class={`badge phase ${it.state}`}>{it.state}</span></>}
      actions={may && retriable && <button type="button" disabled={busy} onClick={() => run("retry", { body: it.state === "dead" ? { items: [it.id] } : { outcomes: ["failed"], where: it.reason } })}>Retry</button>}
      previous={to(listed[at - 1])} next={to(listed[at + 1])} close={() => amend({ item: "" })}>
      {failed && <p role="alert" class="bad">{failed.message}</p>}
      {!value && (error ? <Failure error={error} retry={reload} /> : <Loading />)}
      {value && (
        <>
          {it.reason && <p class="notice" role="status">{it.reason}</p>}
          {(value.result?.warnings ?? []).map((w) => <p key={w.code} class="notice">{w.text}</p>)}
          {it.state === "done" && <Viewer subject={item} panels={panels} pictures={Object.fromEntries(panels.map((p) => [p.kind, p.src]))} />}
          <Figures metrics={metrics} scores={it.metrics ?? {}} seconds={it.seconds} />
          {it.state === "done" && <Curves path={path} about={it.name} />}
          {files.some((f) => f.name === "states.png") && <States path={path} after={value.settings.keep_states.replaceAll(",", ", ")} />}
          {it.state === "pending" && <Running item={it.id} />}
          <details><summary>Settings</summary><Pairs kind="settings" of={Object.entries(value.settings ?? {}).map(([k, v]) => [k, text(v)])} /></details>
          <details><summary>Attempts and log</summary><Attempts path={path} /></details>
          {files.length > 0 && <p class="links"><span>Files</span>{files.map((f) => <a key={f.name} href={address(`${path}/files/${name(f.name)}`)}>{f.name}</a>)}</p>}
        </>
      )}
    </Dialog>
  );
}

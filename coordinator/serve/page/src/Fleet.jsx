// Fleet.jsx: coordinators, queue, store and workers.

import { ago, count, short } from "./format.js";
import { Failure, Loading, Message } from "./Message.jsx";
import { useResource } from "./resource.js";
import { link } from "./route.js";

function stateOf(w) {
  if (w.hung) return ["hung", w.hung];
  if (w.draining) return ["draining", ""];
  if (w.suspended) return ["suspended", w.suspended_campaign ? `from ${w.suspended_campaign}: ${w.suspended}` : w.suspended];
  const refused = Object.entries(w.refused ?? {});
  return ["ready", refused.map(([c, reason]) => `leases nothing of ${c}: ${reason}`).join("; ")];
}

function Worker({ worker: w }) {
  const [state, why] = stateOf(w);
  const stale = Date.now() - new Date(w.at) > 60_000;
  return (
    <tr>
      <th scope="row">{w.name}<span class="half">{w.version}</span></th>
      <td><span class={`badge phase ${stale ? "dead" : state}`}>{stale ? "silent" : state}</span>{why && <span class="half bad">{why}</span>}</td>
      <td>{w.provider} {w.device}<span class="half">{w.auto || (w.precisions ?? []).join(", ")}</span></td>
      <td class="wide">{w.campaign ? <a href={link(["campaigns", w.campaign])}>{w.campaign}</a> : "–"}{w.item && <span class="half">{w.item}</span>}</td>
      <td class="num" data-label="held">{count(w.held)}</td>
      <td class="num" data-label="settled">{count(w.items)}</td>
      <td class="num" data-label="steps/s">{w.steps_per_second ? short(w.steps_per_second) : "–"}</td>
      <td class="num" data-label="beat">{ago(w.at)}</td>
    </tr>
  );
}

function Parts({ cluster }) {
  const health = (text) => (text ? <span class="bad">{text}</span> : "reachable");
  return (
    <dl class="facts">
      <div><dt>Leader</dt><dd>{cluster.leader || "none"}</dd></div>
      <div><dt>NATS</dt><dd>{health(cluster.nats_problem ?? cluster.nats?.problem)}</dd></div>
      <div><dt>Store</dt><dd>{cluster.store?.address ?? cluster.store} {cluster.store?.problem && health(cluster.store.problem)}</dd></div>
      {(cluster.coordinators ?? []).map((c) => (
        <div key={c.id ?? c.name}><dt>Coordinator{c.leading ? ", leads" : ""}</dt><dd>{c.name} {c.store ? <span class="bad">{c.store}</span> : <span class="muted">{ago(c.at)}</span>}</dd></div>
      ))}
    </dl>
  );
}

function Queue({ rows }) {
  if (rows.length === 0) return <p class="muted">No item waits.</p>;
  return (
    <table class="list">
      <thead><tr><th scope="col">Campaign</th><th scope="col">Class</th><th scope="col" class="num">Waiting</th></tr></thead>
      <tbody>{rows.map((q) => (
        <tr key={`${q.campaign} ${q.class}`}><td class="wide"><a href={link(["campaigns", q.campaign])}>{q.campaign}</a></td><td>{q.class}</td><td class="num" data-label="waiting">{count(q.items ?? q.messages)}</td></tr>
      ))}</tbody>
    </table>
  );
}

export function Fleet() {
  const concerns = (event) => event.type === "workers" || event.type === "cluster";
  const workers = useResource("workers", undefined, concerns);
  const cluster = useResource("cluster", undefined, concerns);
  const error = workers.error ?? cluster.error;
  if (!workers.value || !cluster.value) return error ? <Failure error={error} retry={() => { workers.reload(); cluster.reload(); }} /> : <Loading />;
  const all = workers.value.workers ?? workers.value;
  return (
    <>
      <div class="head"><h1>Fleet</h1></div>
      {error && <Failure error={error} />}
      <Parts cluster={cluster.value} />
      <section aria-labelledby="workers">
        <h2 id="workers">{count(all.length)} workers</h2>
        {all.length === 0 ? <Message title="No worker runs">Start one on each device: <code>ddiff worker --nats nats://host:4222</code>.</Message> : (
          <table class="list">
            <thead><tr>
              <th scope="col">Worker</th><th scope="col">State</th><th scope="col">Device</th><th scope="col">Last lease</th>
              <th scope="col" class="num">Held</th><th scope="col" class="num">Settled</th><th scope="col" class="num">Steps/s</th><th scope="col" class="num">Beat</th>
            </tr></thead>
            <tbody>{all.map((w) => <Worker key={w.name} worker={w} />)}</tbody>
          </table>
        )}
      </section>
      <section aria-labelledby="queue"><h2 id="queue">Queue</h2><Queue rows={cluster.value.queue ?? []} /></section>
    </>
  );
}

// Fleet.jsx: coordinators, queue, store and workers.

import { ofFleet } from "./events.js";
import { ago, count, moment, plural, short } from "./format.js";
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

// age is that by the clock of the queue server: the clock of the browser is another one.
const age = (beat) => beat.age_s ?? 0;

function Worker({ worker: w }) {
  const [state, why] = stateOf(w);
  const stale = age(w) > 60;
  return (
    <tr>
      <th scope="row">{w.name}<span class="half">{w.version}</span></th>
      <td><span class={`badge phase ${stale ? "dead" : state}`}>{stale ? "silent" : state}</span>{why && <span class="half bad">{why}</span>}</td>
      <td>{w.provider} {w.device}<span class="half">{(w.precisions ?? []).join(", ")}</span></td>
      <td class="wide">{w.campaign ? <a href={link(["campaigns", w.campaign])}>{w.campaign}</a> : "–"}{w.solving && <span class="half">{w.solving.items[0].name}, step {w.solving.step} of {w.solving.steps}</span>}</td>
      <td class="num" data-label="held">{count(w.held)}</td>
      <td class="num" data-label="settled">{count(w.items)}</td>
      <td class="num" data-label="steps/s">{w.solving?.rate ? short(w.solving.rate) : "–"}</td>
      <td class="num" data-label="beat">{ago(age(w))}</td>
    </tr>
  );
}

function Parts({ cluster: c }) {
  return (
    <dl class="facts">
      <div><dt>Leader</dt><dd>{c.leader ? <>{c.leader.name} <span class="half">since {moment(c.leader.since)}</span></> : <span class="bad">none</span>}</dd></div>
      {c.coordinators.map((k) => (
        <div key={k.id}><dt>Coordinator{k.name === c.answered ? ", answers" : ""}</dt><dd>{k.name} <span class="half">beat {ago(age(k))}</span>{k.store && <span class="half bad">{k.store}</span>}</dd></div>
      ))}
      <div><dt>NATS</dt><dd>{c.nats || "–"}</dd></div>
      <div><dt>Store</dt><dd>{c.store || "–"}</dd></div>
    </dl>
  );
}

function Queue({ queues, streams }) {
  return (
    <>
      {queues.length === 0 ? <p class="muted">No item waits.</p> : (
        <table class="list">
          <thead><tr><th scope="col">Campaign</th><th scope="col">Priority</th><th scope="col" class="num">Waiting</th><th scope="col" class="num">In flight</th></tr></thead>
          <tbody>{queues.map((q) => (
            <tr key={q.campaign}>
              <th scope="row"><a href={link(["campaigns", q.campaign])}>{q.campaign}</a></th><td>{q.priority}</td>
              <td class="num" data-label="waiting">{count(q.waiting)}</td><td class="num" data-label="in flight">{count(q.in_flight)}</td>
            </tr>
          ))}</tbody>
        </table>
      )}
      <dl class="facts streams">{streams.map((s) => (
        <div key={s.name}><dt>{s.name}</dt><dd>{count(s.messages)} messages <span class="half">{(s.bytes / 1e6).toFixed(1)} MB{s.max_bytes > 0 ? ` of ${(s.max_bytes / 1e6).toFixed(0)}` : ""}</span></dd></div>
      ))}</dl>
    </>
  );
}

export function Fleet() {
  const workers = useResource("workers", undefined, ofFleet);
  const cluster = useResource("cluster", undefined, ofFleet);
  const error = workers.error ?? cluster.error;
  if (!workers.value || !cluster.value) return error ? <Failure error={error} retry={() => { workers.reload(); cluster.reload(); }} /> : <Loading />;
  const all = workers.value.workers;
  return (
    <>
      <div class="head"><h1>Fleet</h1></div>
      {error && <Failure error={error} />}
      <Parts cluster={cluster.value} />
      <section aria-labelledby="workers">
        <h2 id="workers">{plural(all.length, "worker")}</h2>
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
      <section aria-labelledby="queue"><h2 id="queue">Queue</h2><Queue {...cluster.value} /></section>
    </>
  );
}

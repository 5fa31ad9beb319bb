// Failures.jsx: failed and dead items by their reasons, each with a retry.

import { useVerb } from "./Actions.jsx";
import { name } from "./api.js";
import { ofCampaign } from "./events.js";
import { count, plural } from "./format.js";
import { useResource } from "./resource.js";
import { amend } from "./route.js";

const most = 500;

// byReason groups items by state and reason, the largest group first. Digits differ between items with one cause.
function byReason(items) {
  const groups = Map.groupBy(items, (i) => `${i.state}\n${(i.reason ?? "").replace(/\d+/g, "#")}`);
  return [...groups.values()].sort((a, b) => b.length - a.length);
}

// retryOf selects a group for a retry: dead items by their ids, failed ones by the part of the reason that they share.
function retryOf(group) {
  const { state, reason = "" } = group[0];
  return state === "dead" ? { items: group.map((i) => i.id) } : { outcomes: [state], where: reason.split(/\d/)[0].trim() };
}

export function Failures({ id, counts, may, done }) {
  const path = `campaigns/${name(id)}/items`;
  const failed = useResource(counts.failed > 0 ? path : null, { state: "failed", limit: most }, ofCampaign(id));
  const dead = useResource(counts.dead > 0 ? path : null, { state: "dead", limit: most }, ofCampaign(id));
  const [run, busy, error] = useVerb(id, done);
  const items = [...(failed.value?.items ?? []), ...(dead.value?.items ?? [])];
  const total = counts.failed + counts.dead;
  return (
    <section class="panel-box" aria-labelledby="failures">
      <div class="head">
        <h2 id="failures">{plural(total, "item")} without a result</h2>
        {may && <button type="button" disabled={busy} onClick={() => run("retry", { body: { outcomes: ["failed", "dead"] } })}>Retry all</button>}
      </div>
      {error && <p role="alert" class="bad">{error.message}</p>}
      <table class="list">
        <thead><tr><th scope="col">State</th><th scope="col">Reason</th><th scope="col" class="num">Items</th>{may && <th scope="col"><span class="hide">Retry</span></th>}</tr></thead>
        <tbody>{byReason(items).map((group) => (
          <tr key={group[0].id}>
            <td><span class="badge">{group[0].state}</span></td>
            <td class="wide">{group[0].reason || "no reason recorded"}</td>
            <td class="num" data-label="items"><button type="button" class="link" onClick={() => amend({ state: group[0].state, item: group.length === 1 ? group[0].id : "" })}>{count(group.length)}</button></td>
            {may && <td><button type="button" disabled={busy} onClick={() => run("retry", { body: retryOf(group) })}>Retry {count(group.length)}</button></td>}
          </tr>
        ))}</tbody>
      </table>
      {total > items.length && items.length > 0 && <p class="muted">Of the first {count(items.length)}.</p>}
    </section>
  );
}

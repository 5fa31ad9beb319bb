// Campaigns.jsx: all campaigns, newest first.

import { useMemo, useState } from "preact/hooks";
import { Actions, ended } from "./Actions.jsx";
import { ofCampaign } from "./events.js";
import { count, duration, fixed, moment } from "./format.js";
import { Failure, Loading, Message } from "./Message.jsx";
import { Phase, Progress } from "./Progress.jsx";
import { useResource } from "./resource.js";
import { amend, link } from "./route.js";
import { Choice, Search, Toolbar } from "./Toolbar.jsx";

// left is the remaining time with its 95 % interval.
export function left({ phase, left_s: s, left_low_s: low, left_high_s: high }) {
  if (ended(phase) || !s) return "–";
  return <>{duration(s)}{high > 0 && <span class="half">{duration(low)} to {duration(high)}</span>}</>;
}

function Row({ campaign, status, may, chosen, choose, reload }) {
  const n = status.counts;
  return (
    <tr>
      <td><input type="checkbox" checked={chosen} onChange={choose} aria-label={`Compare ${campaign.id}`} /></td>
      <th scope="row">
        <a href={link(["campaigns", campaign.id])}>{campaign.spec.name || campaign.id}</a>
        <span class="half">{campaign.id}{campaign.owner ? ` · ${campaign.owner}` : ""}</span>
      </th>
      <td><Phase campaign={campaign} />{status.problem && <span class="half bad">{status.problem}</span>}</td>
      <td class="wide"><Progress counts={n} /><span class="half">{count(n.done)} of {count(n.items)}{status.complete || ended(campaign.phase) ? "" : " so far"}</span></td>
      <td class={n.failed ? "num bad" : "num"} data-label="failed">{count(n.failed)}</td>
      <td class={n.dead ? "num bad" : "num"} data-label="dead">{count(n.dead)}</td>
      <td class="num" data-label="device time">{duration(status.device_seconds ?? 0)}{status.cost > 0 && <span class="half">cost {fixed(status.cost, 2)}</span>}</td>
      <td class="num" data-label="left">{left(status)}</td>
      <td class="num" data-label="submitted">{moment(campaign.submitted)}</td>
      {may && <td><Actions campaign={campaign} done={reload} /></td>}
    </tr>
  );
}

const phases = ["queued", "preflight", "canary", "running", "paused", "finished", "cancelled", "rejected"];

export function Campaigns({ query, may }) {
  const { value, error, reload } = useResource("campaigns", { archived: query.archived }, ofCampaign());
  const [chosen, setChosen] = useState([]);
  const shown = useMemo(() => (value?.campaigns ?? []).filter(({ campaign: c }) =>
    (!query.phase || c.phase === query.phase) && (!query.q || `${c.spec.name} ${c.id}`.toLowerCase().includes(query.q.toLowerCase()))).reverse(), [value, query]);
  if (!value) return error ? <Failure error={error} retry={reload} /> : <Loading />;
  const choose = (id) => setChosen(chosen.includes(id) ? chosen.filter((c) => c !== id) : [...chosen.slice(-1), id]);
  return (
    <>
      <div class="head">
        <h1>Campaigns</h1>
        <p class="actions">
          <a class="button" aria-disabled={chosen.length !== 2} href={chosen.length === 2 ? link(["compare"], { a: chosen[0], b: chosen[1] }) : null}>Compare{chosen.length > 0 ? ` ${chosen.length} of 2` : ""}</a>
          {may && <a class="button primary" href={link(["submit"])}>Submit a campaign</a>}
        </p>
      </div>
      {error && <Failure error={error} retry={reload} />}
      <Toolbar>
        <Search name="q" label="Name" value={query.q} />
        <Choice name="phase" label="Phase" value={query.phase} options={phases} />
        <label><input type="checkbox" checked={query.archived === "true"} onChange={(e) => amend({ archived: e.target.checked ? "true" : "" })} /> archived too</label>
        <output>{shown.length} of {value.campaigns.length}</output>
      </Toolbar>
      {shown.length > 0 && (
        <table class="list campaigns">
          <thead><tr>
            <th scope="col"><span class="hide">Compare</span></th><th scope="col">Campaign</th><th scope="col">Phase</th><th scope="col">Items</th>
            <th scope="col" class="num">Failed</th><th scope="col" class="num">Dead</th><th scope="col" class="num">Device time</th><th scope="col" class="num">Left</th><th scope="col" class="num">Submitted</th>
            {may && <th scope="col"><span class="hide">Actions</span></th>}
          </tr></thead>
          <tbody>{shown.map((s) => (
            <Row key={s.campaign.id} {...s} may={may} chosen={chosen.includes(s.campaign.id)} choose={() => choose(s.campaign.id)} reload={reload} />
          ))}</tbody>
        </table>
      )}
      {shown.length === 0 && (value.campaigns.length > 0
        ? <Message title="No campaign matches">Clear the name and the phase to see all {value.campaigns.length}.</Message>
        : <Message title="No campaigns yet">
            {may ? <><a href={link(["submit"])}>Submit one here</a>, or in a terminal: </> : "In a terminal: "}<code>ddiff submit campaign.yaml</code>.
          </Message>)}
    </>
  );
}

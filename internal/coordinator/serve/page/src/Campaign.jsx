// Campaign.jsx: one campaign: its state, throughput, failures and items.

import { useState } from "preact/hooks";
import { Actions, ended } from "./Actions.jsx";
import { address, name } from "./api.js";
import { Budget, limits } from "./Budget.jsx";
import { left } from "./Campaigns.jsx";
import { ofCampaign } from "./events.js";
import { Failures } from "./Failures.jsx";
import { count, duration, fixed, moment, short } from "./format.js";
import { Item } from "./Item.jsx";
import { Items } from "./Items.jsx";
import { Failure, Loading } from "./Message.jsx";
import { Pairs } from "./Pairs.jsx";
import { Phase, Progress } from "./Progress.jsx";
import { Quality } from "./Quality.jsx";
import { useResource } from "./resource.js";
import { amend, link } from "./route.js";
import { again } from "./Submit.jsx";
import { Throughput } from "./Throughput.jsx";

const states = ["done", "failed", "dead", "running", "pending", "cancelled"];

function Counts({ counts, state }) {
  return (
    <ul class="counts" aria-label="Items by state">
      {states.filter((s) => counts[s] > 0 || s === "done").map((s) => (
        <li key={s} class={s}>
          <button type="button" aria-pressed={state === s} onClick={() => amend({ state: state === s ? "" : s })}><strong>{count(counts[s])}</strong> {s}</button>
        </li>
      ))}
      <li class="total">of {count(counts.items)} items</li>
    </ul>
  );
}

// cost is the cost of a campaign, and its parts if several pools or months have one.
function cost({ cost: sum, uses = [] }) {
  if (uses.length < 2) return fixed(sum, 2);
  return `${fixed(sum, 2)}: ${uses.map((u) => `${u.pool} ${fixed(u.cost ?? 0, 2)} in ${u.month}`).join(", ")}`;
}

function Facts({ campaign: c, status: s }) {
  const over = ended(c.phase);
  const facts = [
    ["Left", over ? null : left(s)], ["Rate", over ? null : `${short(s.rate)} items/s`], ["Workers", over ? null : count(s.workers)],
    ["Device time", s.device_seconds > 0 && duration(s.device_seconds)], ["Cost", s.cost > 0 && cost(s)], ["Budget", limits(c.spec.budget)], ["Deadline", c.spec.deadline && moment(c.spec.deadline)],
    ["Priority", c.priority && `${c.priority}, ${c.urgent ? "raised for the deadline" : `weight ${c.weight}`}`], ["Prior", c.prior?.name], ["Precision", c.spec.precision],
    ["Submitted", c.submitted && moment(c.submitted)], ["Finished", c.finished && moment(c.finished)], ["Owner", c.owner], ["Output", c.output],
  ];
  return <Pairs kind="facts" of={facts} />;
}

// sides are those of a comparison to begin with: the methods of a campaign that has several.
function sides({ id, spec }) {
  const [first, second] = spec.methods ?? [];
  return second ? { a: id, b: id, where_a: `method=${first}`, where_b: `method=${second}` } : { a: id };
}

export function Campaign({ id, query, may }) {
  const path = `campaigns/${name(id)}`;
  const { value, error, reload } = useResource(path, undefined, ofCampaign(id));
  const [listed, setListed] = useState([]);
  if (!value) return error ? <Failure error={error} retry={reload} /> : <Loading />;
  const { campaign, status } = value;
  return (
    <>
      <p class="kicker"><a href={link(["campaigns"])}>Campaigns</a> / {campaign.id}</p>
      <div class="head">
        <h1>{campaign.spec.name || campaign.id} <Phase campaign={campaign} /></h1>
        <p class="actions">
          {ended(campaign.phase) && <a class="button" href={address(`${path}/report/index.html`)}>Report</a>}
          <a class="button" href={link(["compare"], sides(campaign))}>Compare…</a>
          {may && <button type="button" onClick={() => again(campaign.spec)}>Again with changes…</button>}
          {may && <Actions campaign={campaign} done={reload} />}
        </p>
      </div>
      {error && <Failure error={error} retry={reload} />}
      {[campaign.reason, status.problem, status.warning].filter(Boolean).map((text) => <p key={text} class="notice" role="status">{text}</p>)}
      {may && campaign.phase !== "finished" && campaign.spec.budget && <Budget campaign={campaign} done={reload} />}
      <Progress counts={status.counts} />
      <Counts counts={status.counts} state={query.state} />
      <Facts campaign={campaign} status={status} />
      <Throughput id={id} over={ended(campaign.phase)} />
      {status.counts.failed + status.counts.dead > 0 && <Failures id={id} counts={status.counts} may={may} done={reload} />}
      {ended(campaign.phase) && status.counts.done > 0 && <Quality path={path} />}
      <Items id={id} query={query} status={status} listed={setListed} />
      {query.item && <Item key={query.item} id={id} item={query.item} listed={listed} may={may} done={reload} />}
    </>
  );
}

// Budget.jsx: the limits of a campaign, and a form that changes them.

import { useVerb } from "./Actions.jsx";
import { count } from "./format.js";

const fields = [["items", "items"], ["seconds", "device-seconds"], ["cost", "cost"]];

// limits lists the limits of a budget, null without one.
export const limits = (budget) => fields.filter(([name]) => budget?.[name]).map(([name, label]) => `${count(budget[name])} ${label}`).join(", ") || null;

export function Budget({ campaign, done }) {
  const [run, busy, error] = useVerb(campaign.id, done);
  const budget = campaign.spec.budget ?? {};
  const send = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    run("change", { body: { budget: { ...budget, ...Object.fromEntries(fields.map(([name]) => [name, Number(form.get(name))])) } } });
  };
  return (
    <details>
      <summary>Change the budget</summary>
      <form class="toolbar" onSubmit={send}>
        {fields.map(([name, label]) => (
          <label key={name}>{label} <input type="number" name={name} min="0" step={name === "items" ? 1 : "any"} placeholder="no limit" defaultValue={budget[name] ?? ""} /></label>
        ))}
        <button disabled={busy}>Change</button>
        {error && <span role="alert" class="bad">{error.message}</span>}
      </form>
    </details>
  );
}

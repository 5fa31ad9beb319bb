// Actions.jsx: the verbs of a campaign. Destructive ones ask first.

import { useRef, useState } from "preact/hooks";
import { name, patch, post } from "./api.js";

export const ended = (phase) => ["finished", "cancelled", "rejected"].includes(phase);

// useVerb returns [run(verb, options), busy, error]. The verb "change" changes the settings of the body.
export function useVerb(id, done) {
  const [state, set] = useState({});
  const run = async (verb, options) => {
    set({ busy: verb });
    try {
      const path = `campaigns/${name(id)}`;
      await (verb === "change" ? patch(path, options) : post(`${path}/${verb}`, options));
      set({});
      done?.();
    } catch (error) {
      set({ error });
    }
  };
  return [run, state.busy, state.error];
}

export function Actions({ campaign, done }) {
  const [run, busy, error] = useVerb(campaign.id, done);
  const ask = useRef(null);
  const paused = campaign.wanted === "pause" || campaign.phase === "rejected"; // one that waits below a cap can be paused, and Resume does nothing
  const over = ended(campaign.phase) && campaign.phase !== "rejected";
  if (campaign.phase === "finished") return null;
  const cancel = (now) => {
    ask.current.close();
    run("cancel", { query: { now } });
  };
  return (
    <span class="actions">
      {!over && (paused
        ? <button type="button" disabled={busy} onClick={() => run("resume")}>Resume</button>
        : <button type="button" disabled={busy} onClick={() => run("pause")}>Pause</button>)}
      {!ended(campaign.phase) && <button type="button" disabled={busy} onClick={() => ask.current.showModal()}>Cancel…</button>}
      {campaign.phase === "cancelled" && <button type="button" disabled={busy} onClick={() => run("resume")}>Resume</button>}
      {error && <span role="alert" class="bad">{error.message}</span>}
      <dialog ref={ask} class="ask" aria-label={`Cancel ${campaign.id}`}>
        <h2>Cancel {campaign.spec?.name || campaign.id}?</h2>
        <p class="muted">Items without a result are cancelled. Results stay, and Resume continues later.</p>
        <p class="actions">
          <button type="button" class="danger" onClick={() => cancel(false)}>Cancel, finish what runs</button>
          <button type="button" class="danger" onClick={() => cancel(true)}>Cancel now</button>
          <button type="button" onClick={() => ask.current.close()}>Go back</button>
        </p>
      </dialog>
    </span>
  );
}

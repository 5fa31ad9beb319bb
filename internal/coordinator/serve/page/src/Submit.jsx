// Submit.jsx: a campaign as YAML, typed, from a file, from the template of a task, or from another campaign. The server validates it as one types.

import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "./api.js";
import { plural } from "./format.js";
import { useResource } from "./resource.js";
import { go } from "./route.js";
import { line, meaning, template, yaml } from "./template.js";

const pause = 500;
const draft = "ddiff-campaign";

// again opens the form with the file of a campaign.
export function again(spec) {
  sessionStorage.setItem(draft, yaml(spec));
  go(["submit"]);
}

// useCheck validates a text after each pause in typing.
function useCheck(text, options) {
  const [state, set] = useState({});
  useEffect(() => {
    if (text.trim() === "") return set({});
    const aborted = new AbortController();
    set((last) => ({ ...last, checking: true }));
    const timer = setTimeout(async () => {
      try {
        set({ answer: await post("campaigns", { query: { ...options, dry_run: true }, body: text, type: "application/yaml", signal: aborted.signal }) });
      } catch (error) {
        if (error.name !== "AbortError") set({ error });
      }
    }, pause);
    return () => {
      clearTimeout(timer);
      aborted.abort();
    };
  }, [text, JSON.stringify(options)]);
  return state;
}

const problemsOf = ({ answer, error }) => {
  if (answer) return answer.problems ?? [];
  if (!error) return [];
  return error.problems.length > 0 ? error.problems : [{ message: error.message }];
};

function Verdict({ check, empty }) {
  if (empty) return <p class="muted" role="status">Choose a task, open a campaign file or drop it here, or type.</p>;
  const problems = problemsOf(check);
  if (problems.length > 0) {
    return (
      <ul class="problems" role="status">
        {problems.map((p, i) => <li key={i} class="bad">{p.line && `Line ${p.line}: `}{p.field && <code>{p.field}</code>} {p.message}</li>)}
      </ul>
    );
  }
  if (!check.answer) return <p class="muted" role="status">Checking…</p>;
  return (
    <p class={check.checking ? "muted" : "good"} role="status">
      This campaign is valid: {check.answer.items === undefined ? "its dataset is large and not counted yet" : <><strong>{check.answer.more ? "at least " : ""}{plural(check.answer.items, "item")}</strong> of {plural(check.answer.rows, "image")}</>}.
    </p>
  );
}

// Entries lists tasks or methods with their parameters. A click adds the line of a parameter.
function Entries({ title, all, add }) {
  return (
    <details>
      <summary>{title}</summary>
      {all.map((x) => (
        <details key={x.name}>
          <summary><code>{x.name}</code></summary>
          <p>{x.about}</p>
          <dl class="settings">{x.parameters.map((p) => (
            <div key={p.name}>
              <dt><button type="button" class="link" onClick={() => add(line(p))}>{p.name}</button></dt>
              <dd>{meaning(p)}{p.with && `; only with ${p.with.join(" or ")}`}</dd>
            </div>
          ))}</dl>
        </details>
      ))}
    </details>
  );
}

export function Submit() {
  const [text, setText] = useState(() => sessionStorage.getItem(draft) ?? "");
  const area = useRef(null);
  const [options, setOptions] = useState({});
  const [sending, setSending] = useState({});
  const check = useCheck(text, options);
  const tasks = useResource("tasks").value ?? [];
  const methods = useResource("methods").value ?? [];
  useEffect(() => sessionStorage.setItem(draft, text), [text]);
  const set = (field) => (event) => setOptions({ ...options, [field]: event.target.value });
  const send = async (event) => {
    event.preventDefault();
    setSending({ busy: true });
    try {
      const made = await post("campaigns", { query: options, body: text, type: "application/yaml" });
      sessionStorage.removeItem(draft);
      go(["campaigns", made.id]);
    } catch (error) {
      setSending({ error });
    }
  };
  const open = async (event, files) => {
    event.preventDefault();
    if (files.length > 0) setText(await files[0].text());
  };
  // add writes a line below that of the caret, as far in.
  const add = (added) => {
    const end = `${text}\n`.indexOf("\n", area.current.selectionStart);
    const indent = /^[ -]*/.exec(text.slice(text.lastIndexOf("\n", end - 1) + 1, end))[0].replaceAll("-", " ");
    area.current.setRangeText(`\n${indent}${added}`, end, end, "end");
    setText(area.current.value);
    area.current.focus();
  };
  const ready = text.trim() !== "" && !check.checking && check.answer && problemsOf(check).length === 0;
  return (
    <form class="submit" onSubmit={send}>
      <div class="head"><h1>Submit a campaign</h1></div>
      <div class="columns">
        <div>
          <label for="spec">Campaign file (YAML)</label>
          <textarea id="spec" ref={area} spellcheck={false} autocapitalize="off" rows={18} value={text} onInput={(e) => setText(e.target.value)}
            onDragOver={(e) => e.preventDefault()} onDrop={(e) => open(e, e.dataTransfer.files)} aria-describedby="verdict" />
          <div id="verdict"><Verdict check={check} empty={text.trim() === ""} /></div>
        </div>
        <div class="side">
          <label>Template <select name="template" value="" onChange={(e) => setText(template(tasks.find((t) => t.name === e.target.value), methods[0].name))}>
            <option value="">choose a task</option>{methods.length > 0 && tasks.map((t) => <option key={t.name} value={t.name}>{t.name}: {t.about}</option>)}
          </select></label>
          <label>Campaign file <input type="file" accept=".yaml,.yml,.json" onChange={(e) => open(e, e.target.files)} /></label>
          <label>Priority <select value={options.priority ?? "normal"} onChange={set("priority")}><option>high</option><option>normal</option><option>low</option></select></label>
          <label>Weight <input type="number" min="1" max="1000" placeholder="1" value={options.weight ?? ""} onInput={set("weight")} /></label>
          <label>Canary items <input type="number" min="0" placeholder="2" value={options.canary ?? ""} onInput={set("canary")} /></label>
          <label>Output <input placeholder="the campaign's id" value={options.output ?? ""} onInput={set("output")} /></label>
          <p class="actions"><button class="primary" disabled={!ready || sending.busy}>Submit</button></p>
          {sending.error && <p role="alert" class="bad">{sending.error.message}</p>}
          <Entries title="Tasks and their parameters" all={tasks} add={add} />
          <Entries title="Methods and their parameters" all={methods} add={add} />
        </div>
      </div>
    </form>
  );
}

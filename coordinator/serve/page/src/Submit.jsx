// Submit.jsx: a campaign as YAML. The server validates it as one types, and counts its items.

import { useEffect, useState } from "preact/hooks";
import { post } from "./api.js";
import { plural } from "./format.js";
import { useResource } from "./resource.js";
import { go } from "./route.js";

const example = `name: example
dataset:
  path: s3://datasets/photographs
  size: 128
tasks: [super_resolution]
methods: [ddiff]
`;
const pause = 500;
const draft = "ddiff-campaign";

// useCheck validates a text after each pause in typing.
function useCheck(text, options) {
  const [state, set] = useState({});
  useEffect(() => {
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

function Verdict({ check }) {
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

function Names({ title, all }) {
  return (
    <details>
      <summary>{title}</summary>
      <dl class="settings">{all.map((x) => <div key={x.name}><dt><code>{x.name}</code></dt><dd>{x.label ?? x.summary ?? x.doc ?? x.description ?? ""}</dd></div>)}</dl>
    </details>
  );
}

export function Submit() {
  const [text, setText] = useState(() => sessionStorage.getItem(draft) ?? example);
  const [options, setOptions] = useState({});
  const [sending, setSending] = useState({});
  const check = useCheck(text, options);
  const tasks = useResource("tasks");
  const methods = useResource("methods");
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
  const ready = !check.checking && check.answer && problemsOf(check).length === 0;
  return (
    <form class="submit" onSubmit={send}>
      <div class="head"><h1>Submit a campaign</h1></div>
      <div class="columns">
        <div>
          <label for="spec">Campaign file (YAML)</label>
          <textarea id="spec" spellcheck={false} autocapitalize="off" rows={18} value={text} onInput={(e) => setText(e.target.value)} aria-describedby="verdict" />
          <div id="verdict"><Verdict check={check} /></div>
        </div>
        <div class="side">
          <label>Priority <select value={options.priority ?? "normal"} onChange={set("priority")}><option>high</option><option>normal</option><option>low</option></select></label>
          <label>Weight <input type="number" min="1" max="1000" placeholder="1" value={options.weight ?? ""} onInput={set("weight")} /></label>
          <label>Canary items <input type="number" min="0" placeholder="2" value={options.canary ?? ""} onInput={set("canary")} /></label>
          <label>Output <input placeholder="the campaign's id" value={options.output ?? ""} onInput={set("output")} /></label>
          <p class="actions"><button class="primary" disabled={!ready || sending.busy}>Submit</button></p>
          {sending.error && <p role="alert" class="bad">{sending.error.message}</p>}
          {tasks.value && <Names title="Tasks" all={tasks.value.tasks ?? tasks.value} />}
          {methods.value && <Names title="Methods" all={methods.value.methods ?? methods.value} />}
        </div>
      </div>
    </form>
  );
}

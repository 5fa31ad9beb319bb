// Pairs.jsx: names with values, each [name, value, class, title]. Those without a value are left out.

export const Pairs = ({ kind, of }) => (
  <dl class={kind}>{of.filter(([, v]) => v && v !== "–").map(([k, v, mark, title], i) => <div key={i} title={title}><dt>{k}</dt><dd class={mark}>{v}</dd></div>)}</dl>
);

// Toolbar.jsx: filters of a list. Each is a field of the address.

import { amend } from "./route.js";

export const Toolbar = ({ children }) => <form class="toolbar" role="search" onSubmit={(e) => e.preventDefault()}>{children}</form>;

export const Search = ({ name, label, value }) => (
  <label class="find">{label} <input name={name} type="search" autocomplete="off" spellcheck={false} value={value ?? ""} onInput={(e) => amend({ [name]: e.target.value })} /></label>
);

// Choice offers values, each with its text if that differs. none is the text of no choice.
export const Choice = ({ name, label, value, none = "all", options }) => (
  <label>{label} <select name={name} value={value ?? ""} onChange={(e) => amend({ [name]: e.target.value })}>
    <option value="">{none}</option>{options.map((o) => [o].flat()).map(([v, text = v]) => <option key={v} value={v}>{text}</option>)}
  </select></label>
);

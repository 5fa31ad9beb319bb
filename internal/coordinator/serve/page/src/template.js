// template.js: campaign files as text, to begin with: of a task, or of another campaign.

const words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
const scalar = (v) => (typeof v === "string" && /^[a-z][a-z0-9_]*$/.test(v) && !words.includes(v) ? v : JSON.stringify(v));
const whole = (v) => typeof v === "object" && v !== null && Object.keys(v).length > 0;

// lines writes the fields of a value, which JSON gave, as lines of YAML.
function lines(value) {
  if (Array.isArray(value)) return value.flatMap((v) => (whole(v) ? lines(v).map((line, i) => (i === 0 ? "- " : "  ") + line) : [`- ${scalar(v)}`]));
  return Object.entries(value).flatMap(([key, v]) => (whole(v) ? [`${scalar(key)}:`, ...lines(v).map((line) => `  ${line}`)] : [`${scalar(key)}: ${scalar(v)}`]));
}

export const yaml = (value) => `${lines(value).join("\n")}\n`;

// line is the line of a file for a parameter, and what it means.
export const line = (p) => `${p.name}: ${p.default ?? ""}`;
export const meaning = (p) => `${p.doc}${p.unit ? `, in ${p.unit}` : ""}; ${p.range}`;

// template is a file for a task and a method. The person adds the folder of the pictures.
export const template = (task, method) => `name: ${task.name.replaceAll("_", "-")}
dataset:
  path: # a folder, as in s3://bucket/photographs
  size: 128
tasks:
  - name: ${task.name}${task.parameters.length > 0 ? "\n    params:" : ""}${task.parameters.map((p) => `\n      ${line(p)} # ${meaning(p)}`).join("")}
methods: [${method}]
`;

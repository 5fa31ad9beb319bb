// api.js: calls of the HTTP API. Every answer is JSON; an error has the text of the server's problem document.

// door is a path that only this origin knows. The session belongs to it: browsers send cookies to all ports of a host.
let own = null;
function door() {
  own ??= [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
  try {
    own = localStorage.ddiffDoor ??= own;
  } catch {} // it lasts as long as the page is open
  return own;
}

// ApiError is an answer with an error status, or no answer (status 0).
export class ApiError extends Error {
  constructor(status, message, problems = []) {
    super(message);
    this.status = status;
    this.problems = problems;
  }
}

export const address = (path, query = {}) => {
  const each = Object.entries(query).flatMap(([field, v]) => (Array.isArray(v) ? v.map((one) => [field, one]) : [[field, v]]));
  const set = each.filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false);
  return `api/v1/~${door()}/${path}` + (set.length > 0 ? `?${new URLSearchParams(set)}` : "");
};

// name makes one segment of a path.
export const name = encodeURIComponent;

export async function call(method, path, { query, body, type = "application/json", signal } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = type;
  const sent = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(address(path, query), { method, headers, body: sent, signal, cache: "no-cache", credentials: "same-origin" });
  } catch (cause) {
    if (cause.name === "AbortError") throw cause;
    throw new ApiError(0, "the coordinator does not answer");
  }
  const text = await answer.text();
  const json = /json/.test(answer.headers.get("Content-Type") ?? "");
  const value = json && text !== "" ? JSON.parse(text) : text;
  if (answer.ok) return value;
  throw new ApiError(answer.status, value?.detail ?? value?.title ?? `the coordinator answered ${answer.status}`, (value?.errors ?? []).map((e) => ({ field: e.location, message: e.message })));
}

export const get = (path, query, signal) => call("GET", path, { query, signal });
export const post = (path, options) => call("POST", path, options);
export const patch = (path, options) => call("PATCH", path, options);

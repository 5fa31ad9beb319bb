// format.js: numbers, durations and times as text.

export const count = (n) => (n ?? 0).toLocaleString("en");
export const fixed = (v, digits) => (v === null || v === undefined ? "–" : v.toFixed(digits).replace("-", "−"));
export const signed = (v, digits) => (v < 0 ? "" : "+") + fixed(v, digits);

// short has four significant digits.
export const short = (v) => {
  if (v === null || v === undefined) return "–";
  return v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) ? v.toExponential(2) : String(Number(v.toPrecision(4)));
};

export function duration(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 > 0 ? ` ${s % 60} s` : ""}`;
  const h = Math.floor(s / 3600);
  return h < 48 ? `${h} h ${Math.floor(s % 3600 / 60)} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

// moment is a time of day today, else a date.
export function moment(text) {
  const t = new Date(text);
  if (!text || t.getUTCFullYear() < 2000) return "–";
  const day = t.toLocaleDateString("sv");
  const time = t.toLocaleTimeString("sv", { hour: "2-digit", minute: "2-digit" });
  return day === new Date().toLocaleDateString("sv") ? time : `${day} ${time}`;
}

export const ago = (seconds) => `${duration(seconds)} ago`;

export const plural = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;

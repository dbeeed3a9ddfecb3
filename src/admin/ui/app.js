// The page: who looks, what comes live, and what is done. Everything it does is the API under /api/v1.
import { ago, ask, at, bytes, clock, element, fill, notice, share, span } from "./views.js";
import { SOURCES, graph, map, rate, sample } from "./draw.js";

const API = "/api/v1";
const ROLES = ["viewer", "operator", "admin"];
const PAGE = 25;
let who = null, live = null, news = null, status = null;
const may = role => who && ROLES.indexOf(who.role) >= ROLES.indexOf(role);

const problem = async answer => {
  const said = await answer.json().catch(() => ({}));
  const error = new Error([said.title || answer.status + " " + answer.statusText, said.detail, said.hint].filter(Boolean).join(": "));
  error.status = answer.status;
  return error;
};
const call = async (method, path, body) => {
  const answer = await fetch(API + path, {
    method, cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(15 * 60 * 1000),
    headers: { Accept: "application/json", ...(body ? { "Content-Type": "application/json" } : {}) }, body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw await problem(answer);
  return answer;
};
const rows = async path => (await call("GET", path)).json();
// Does something for whoever clicked, and says how it went.
const act = async (button, doing, done) => {
  if (button) button.disabled = true;
  try {
    const said = await doing();
    if (said !== null) { notice(typeof said === "string" ? said : done); await refresh(); }
  } catch (error) {
    notice(error.message, true);
    if (error.status === 401) await session();
  } finally {
    if (button) button.disabled = false;
  }
};

// ── who looks ──
const session = async () => {
  try { who = await rows("/session"); } catch { who = null; }
  at("login").hidden = Boolean(who);
  at("logout").hidden = !who;
  at("who").textContent = who ? who.name + " (" + who.role + ")" : "";
  document.querySelectorAll("[data-members]").forEach(part => { part.hidden = !who; });
  document.querySelectorAll("[data-role]").forEach(part => { part.hidden = !may(part.dataset.role); });
  follow();
  if (who) await Promise.all([contents(), settings(), events(), ended()]).catch(error => notice(error.message, true));
};
at("login-form").addEventListener("submit", async event => {
  event.preventDefault();
  const [token, name, password] = ["token", "user", "password"].map(id => at(id).value);
  at("login-note").textContent = "";
  try {
    await call("POST", "/session", name ? { name, password } : { token });
    at("token").value = at("password").value = "";
    await session();
    at("main").focus();
  } catch (error) {
    at("login-note").textContent = error.message;
  }
});
at("logout").addEventListener("click", () => call("DELETE", "/session").then(session, error => notice(error.message, true)));

// ── what comes live ──
const follow = () => {
  live?.close();
  news?.close();
  news = null;
  live = new EventSource("/status");
  live.addEventListener("status", event => show(JSON.parse(event.data)));
  live.onerror = () => {
    health("The node does not answer.", true);
    // a stream that was refused or ended stays closed: the session may be over, or the node may be gone
    if (live.readyState === EventSource.CLOSED) setTimeout(() => session(), 2000);
  };
  if (!who) return;
  news = new EventSource(API + "/events?record=events,transfers,blobs");
  const due = new Set();
  const look = () => { const now = [...due]; due.clear(); for (const part of now) ({ events, transfers: ended, blobs: contents })[part]().catch(() => {}); };
  const note = part => { if (!due.size) setTimeout(look, 700); due.add(part); };
  news.addEventListener("change", event => note(JSON.parse(event.data).record));
  news.addEventListener("missed", () => ["events", "transfers", "blobs"].forEach(note));
};
const refresh = () => Promise.all([contents(), events()]);
const health = (text, bad) => { const box = at("health"); if (box.textContent !== text) box.textContent = text; box.className = "health" + (bad ? " bad" : ""); };

const show = now => {
  status = now;
  document.title = now.name + " – Larder";
  at("name").textContent = now.name;
  at("about").textContent = "Larder " + now.version + ", site " + now.site + ", up " + span(now.uptime_seconds) + ", node " + now.node.slice(0, 8);
  at("about").title = now.node;
  const good = now.health.status === "ok";
  health(good ? "Everything works" : now.health.status + (now.health.reasons.length ? ": " + now.health.reasons.join("; ") : ""), !good);
  for (const time of ["today", "week", "ever"]) at("saved-" + time).textContent = bytes(now.saved[time]);
  const held = now.cache;
  at("held").textContent = bytes(held.bytes);
  at("fill").value = held.max_bytes ? held.bytes / held.max_bytes : 0;
  at("held-more").textContent = "of " + bytes(held.max_bytes) + ", " + held.blobs + (held.blobs === 1 ? " blob, " : " blobs, ") + held.pinned + " pinned";
  sample(now.traffic);
  graph(at("graph"));
  traffic(now.traffic);
  if (!now.transfers) return;
  fill("running", ["What", "From", "Received", "Progress", "Readers"], now.transfers.map(transfer), "nothing is being downloaded");
  map(at("map"), now);
  fill("neighbours", ["Name", "Address", "Heard", "Got from it", "Given to it", "Version"], now.peers.map(peer =>
    [peer.name, peer.address, [peer.last_seen_seconds < 5 ? "now" : span(peer.last_seen_seconds) + " ago", "tight"], [bytes(peer.bytes_received), "number"], [bytes(peer.bytes_given), "number"], peer.version + (peer.skipped ? ", skipped: " + peer.skipped : "")]), "none was heard");
  fill("refused", ["Address", "Why", "Until", ...(may("operator") ? ["Actions"] : [])], now.bans.map(ban =>
    [ban.address, ban.reason, [clock(ban.until), "tight"], ...(may("operator") ? [[button("Lift", "Lift the ban of " + ban.address, event => lift(event.currentTarget, ban.address)), "tight"]] : [])]), "nobody is refused");
};
const traffic = sums => {
  const all = sums.bytes_from_cache + sums.bytes_from_peers + sums.bytes_from_origin;
  const of = { cache: sums.bytes_from_cache, peer: sums.bytes_from_peers, origin: sums.bytes_from_origin };
  const line = ([key, name]) => [element("span", {}, element("span", { class: "mark " + key, "aria-hidden": "true" }), name), [bytes(of[key]), "number"], [share(of[key], all), "number"], [bytes(rate(key)) + "/s", "number"]];
  fill("sources", ["Source", "Bytes", "Share", "Now"], [...SOURCES.map(line), ["to programs", [bytes(sums.bytes_to_clients), "number"], [sums.requests + (sums.requests === 1 ? " request" : " requests"), "number"], ""], ["to neighbours", [bytes(sums.bytes_to_peers), "number"], "", ""]], "");
  const tunnelled = sums.bytes_tunnelled || 0;
  at("tunnel").textContent = tunnelled ? bytes(tunnelled) + " (" + share(tunnelled, tunnelled + sums.bytes_to_clients) + ") went through tunnels, which cannot be kept." : "";
};
const transfer = x => [[element("span", { class: "url" }, x.url), "wide"], [element("span", { class: x.source.startsWith("peer") ? "peer" : "origin" }, x.source), "tight"],
  [bytes(x.received) + (x.size == null ? "" : " of " + bytes(x.size)), "number"],
  x.size ? [element("progress", { max: x.size, value: x.received, "aria-label": "Progress of " + x.url }, share(x.received, x.size)), "tight"] : ["size unknown", "soft"], [x.readers, "number"]];

const ended = async () => {
  const list = await rows("/transfers?state=neq.running&order=ended_at.desc&limit=20");
  fill("ended", ["What", "From", "Received", "How it ended", "When"], list.map(x => [[element("span", { class: "url" }, x.url), "wide"], [x.source, "tight"], [bytes(x.received), "number"], x.state, [ago(x.ended_at), "tight"]]), "none yet");
};

// ── contents ──
const order = { by: "last_used", down: true };
let next = null, asked = 0;
const button = (text, label, onclick, more) => element("button", { type: "button", "aria-label": label, onclick, ...more }, text);
const filters = () => {
  const parts = [], text = at("search").value.trim();
  if (text) {
    const quoted = text.replace(/[\\*%_]/g, "\\$&").replaceAll('"', "_"), hex = text.replace(/^sha256:/, "").toLowerCase();
    const url = 'resources.shown_url.ilike."*' + quoted + '*"';
    const digest = /^[0-9a-f]{1,64}$/.test(hex) ? ",and(digest.gte." + hex.padEnd(64, "0") + ",digest.lte." + hex.padEnd(64, "f") + ")" : "";
    parts.push("or=" + encodeURIComponent("(" + url + digest + ")"));
  }
  const week = new Date(Date.now() - 7 * 86400e3).toISOString();
  const kind = { pinned: "pins.digest=gte." + "0".repeat(64), large: "size=gte.1048576", unused: "last_used=lt." + encodeURIComponent(week), first: "first_hand=eq.true" }[at("kind").value];
  if (kind) parts.push(kind);
  return parts.map(part => "&" + part).join("");
};
const beginning = () => "/blobs?limit=" + PAGE + "&select=*,pins(digest),resources(shown_url)&order=" + order.by + (order.down ? ".desc" : ".asc") + ",digest" + filters();
let here = null;
const contents = async from => {
  const mine = ++asked;
  here = from || here || beginning();
  const answer = await call("GET", here);
  const list = await answer.json();
  if (mine !== asked) return;
  const link = /<([^>]+)>;\s*rel="?next"?/.exec(answer.headers.get("Link") || "");
  next = link ? link[1].slice(API.length) : null;
  at("next").disabled = !next;
  at("first").disabled = here === beginning();
  at("found").textContent = list.length ? list.length + (list.length === 1 ? " blob" : " blobs") + (next ? ", and there are more" : "") : "";
  fill("blobs", ["What", ...[["Size", "size"], ["Hits", "hits"], ["Used", "last_used"], ["Stored", "stored_at"]].map(sortable), ...(may("operator") ? ["Actions"] : [])], list.map(blob), at("search").value || at("kind").value ? "nothing is like that" : "nothing is kept yet");
};
const sortable = ([text, by]) => element("button", { type: "button", class: "sort", "data-sort": order.by === by ? (order.down ? "descending" : "ascending") : null, "data-by": by }, text + (order.by === by ? (order.down ? " ▼" : " ▲") : ""));
at("blobs").addEventListener("click", event => {
  const by = event.target.closest("button.sort")?.dataset.by;
  if (!by) return;
  if (order.by === by) order.down = !order.down; else Object.assign(order, { by, down: true });
  contents(beginning()).then(() => at("blobs").querySelector('[data-by="' + by + '"]')?.focus(), error => notice(error.message, true));
});
const blob = row => {
  const urls = (row.resources || []).map(resource => resource.shown_url), pinned = Boolean(row.pins), short = row.digest.slice(0, 19) + "…";
  const name = urls[0] || short;
  const path = "/blobs/" + encodeURIComponent(row.digest);
  const what = element("span", {}, element("span", { class: "url" }, urls[0] || "(no URL is known)"), element("span", { class: "more", title: row.digest }, short + (urls.length > 1 ? ", and " + (urls.length - 1) + " more URLs" : "") + (pinned ? ", pinned" : "")));
  const acts = element("span", { class: "row-acts" },
    button(pinned ? "Unpin" : "Pin", (pinned ? "Unpin " : "Pin ") + name, event => act(event.currentTarget, () => call(pinned ? "DELETE" : "PUT", path + "/pin"), pinned ? "It may go again." : "It is kept.")),
    button("Verify", "Verify " + name, event => act(event.currentTarget, async () => (await (await call("POST", path + "/verify")).json()).sound ? "It is what its digest says." : "It is damaged and no longer given out.")),
    button("Remove", "Remove " + name, event => { const from = event.currentTarget; act(from, async () => await ask("Remove it?", name, null) ? call("DELETE", path) : null, "It is gone."); }));
  return [[what, "wide"], [bytes(row.size), "number"], [row.hits, "number"], [ago(row.last_used), "tight"], [ago(row.stored_at), "tight"], ...(may("operator") ? [[acts, "tight"]] : [])];
};
const search = () => contents(beginning()).catch(error => notice(error.message, true));
let typing;
at("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 300); });
at("kind").addEventListener("change", search);
at("find").addEventListener("submit", event => { event.preventDefault(); search(); });
at("next").addEventListener("click", () => next && contents(next).catch(error => notice(error.message, true)));
at("first").addEventListener("click", search);
at("gc").addEventListener("click", event => { const from = event.currentTarget; act(from, async () => {
  const size = await ask("Make room", "Removes what was unused for longest; what is pinned stays.", "Down to this size; empty: to the configured limits", "");
  if (size === null) return null;
  const done = await (await call("POST", "/gc", size ? { to: size } : {})).json();
  return done.removed + " blobs removed, " + bytes(done.bytes) + " freed.";
}); });
at("purge").addEventListener("click", event => { const from = event.currentTarget; act(from, async () => {
  const url = await ask("Purge", "Forgets what this URL led to, and removes the bytes that no other URL names. A * at the end means all that begin so.", "URL", at("search").value.includes("://") ? at("search").value : "");
  if (!url) return null;
  const done = await (await call("POST", "/purges", { url })).json();
  return done.answers + " answers forgotten, " + done.blobs + " blobs removed, " + bytes(done.bytes) + " freed.";
}); });

// ── bans, settings, events ──
const lift = (from, address) => act(from, () => call("DELETE", "/bans/" + encodeURIComponent(address)), address + " is welcome again.");
at("ban").addEventListener("submit", event => {
  event.preventDefault();
  const address = at("address").value.trim(), duration = at("length").value.trim();
  act(null, () => call("POST", "/bans", { address, ...(duration ? { duration } : {}) }), address + " is refused.").then(() => { at("address").value = ""; });
});
let keys = [];
const settings = async () => { keys = await rows("/configuration"); listed(); };
const listed = () => {
  const part = at("key").value.trim().toLowerCase(), all = !at("set-only").checked;
  const shown = keys.filter(row => (all || row.from !== "default") && (row.key + " " + JSON.stringify(row.value)).toLowerCase().includes(part));
  fill("keys", ["Key", "Value", "From"], shown.map(row => [[element("code", {}, row.key), "tight"], [element("code", {}, JSON.stringify(row.value)), "wide"], row.from]), "all of these are defaults");
};
at("key").addEventListener("input", listed);
at("set-only").addEventListener("change", listed);
at("reload").addEventListener("click", event => act(event.currentTarget, async () => {
  const done = await (await call("POST", "/reload")).json();
  await settings();
  return "Read again. " + (done.applied.length ? "Now in force: " + done.applied.join(", ") + ". " : "Nothing else is in force. ") + (done.need_restart.length ? "After a restart: " + done.need_restart.join(", ") + "." : "");
}));
const events = async () => {
  const list = await rows("/events?order=id.desc&limit=50");
  fill("deeds", ["When", "Who", "By", "What", "Came of it"], list.map(row => [[clock(row.at), "tight"], row.who, row.door, [element("code", {}, row.method + " " + row.path), "wide"], [row.status, row.status < 400 ? "number" : "number bad"]]), "nothing yet");
};

// ── colours ──
const THEMES = ["system", "light", "dark"];
const paint = theme => { if (theme === "system") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme; at("theme").textContent = "Colours: " + theme; };
let theme = THEMES.includes(localStorage.getItem("larder-theme")) ? localStorage.getItem("larder-theme") : "system";
at("theme").addEventListener("click", () => { theme = THEMES[(THEMES.indexOf(theme) + 1) % 3]; localStorage.setItem("larder-theme", theme); paint(theme); });
at("ask-no").addEventListener("click", () => at("ask").close("no"));
document.querySelectorAll("#settings form").forEach(form => form.addEventListener("submit", event => event.preventDefault()));

paint(theme);
graph(at("graph"));
session();

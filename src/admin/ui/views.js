// Tables and words.
export const at = id => document.getElementById(id);
export const bytes = n => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return (i ? n.toFixed(1) : Math.round(n)) + " " + units[i];
};
export const share = (part, all) => all ? Math.round(100 * part / all) + " %" : "–";
export const span = s => s < 60 ? Math.round(s) + " s" : s < 3600 ? Math.floor(s / 60) + " min" : s < 86400 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
export const ago = text => { const s = (Date.now() - Date.parse(text)) / 1000; return Number.isNaN(s) ? "" : s < 5 ? "now" : span(s) + " ago"; };
export const clock = text => { const time = new Date(text); return Number.isNaN(time.getTime()) ? text : time.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" }); };

export const element = (kind, attributes, ...inside) => {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...inside.filter(part => part != null));
  return made;
};

// Fills a table; a head is a text or an element, a cell a text, an element, or [text or element, class].
// Rows that are the same as before stay as they are, so that focus and selection survive.
export const fill = (id, heads, rows, none) => {
  const table = at(id);
  const names = heads.map(head => typeof head === "string" ? head : head.textContent);
  const kinds = heads.map((_, i) => (rows[0] || [])[i]?.[1] === "number" ? "number" : null);
  const head = element("tr", {}, ...heads.map((head, i) => element("th", { scope: "col", class: kinds[i], "aria-sort": head.dataset?.sort }, head)));
  if (!table.tHead?.rows[0]?.isEqualNode(head)) table.createTHead().replaceChildren(head);
  const body = table.tBodies[0] || table.createTBody();
  const made = rows.map(cells => {
    const row = element("tr", {});
    cells.forEach((cell, i) => {
      const [inside, kind] = Array.isArray(cell) ? cell : [cell, null];
      row.append(element(i === 0 ? "th" : "td", { class: kind, scope: i === 0 ? "row" : null, "data-head": names[i] }, inside == null ? "" : inside));
    });
    return row;
  });
  if (!made.length) made.push(element("tr", {}, element("td", { class: "soft", colspan: heads.length }, none)));
  made.forEach((row, i) => {
    const old = body.rows[i];
    if (!old) body.append(row);
    else if (!old.isEqualNode(row)) { if (old.contains(document.activeElement)) refocus(old, row); else old.replaceWith(row); }
  });
  while (body.rows.length > made.length) body.rows[body.rows.length - 1].remove();
};
const refocus = (old, row) => {
  const label = document.activeElement.getAttribute("aria-label") || document.activeElement.textContent;
  old.replaceWith(row);
  [...row.querySelectorAll("button")].find(button => (button.getAttribute("aria-label") || button.textContent) === label)?.focus();
};

export const notice = (text, bad) => {
  const box = at("notice");
  box.textContent = text;
  box.className = bad ? "bad" : "";
  box.hidden = !text;
  clearTimeout(notice.timer);
  if (text && !bad) notice.timer = setTimeout(() => { box.hidden = true; }, 6000);
};

// Asks before something is done that cannot be undone; the text of the field where there is one.
export const ask = (title, text, label, value) => new Promise(resolve => {
  const box = at("ask");
  at("ask-title").textContent = title;
  at("ask-text").textContent = text;
  at("ask-label").hidden = !label;
  at("ask-label").firstElementChild.textContent = label || "";
  at("ask-value").value = value || "";
  box.returnValue = "no";
  box.onclose = () => resolve(box.returnValue === "yes" ? (label ? at("ask-value").value.trim() : true) : null);
  box.showModal();
});

// The two drawings: traffic as stacked areas that move, and who is connected with whom.
import { bytes } from "./views.js";

const SVG = "http://www.w3.org/2000/svg";
const make = (parent, kind, attributes, text) => {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
};
const clear = svg => { for (const child of [...svg.children]) if (child.tagName !== "title") child.remove(); };

export const SOURCES = [["cache", "own cache"], ["peer", "neighbours"], ["origin", "origin servers"]];
const KEPT = 120;
const samples = [];
let before = null;

// Takes the counters of one moment; what came since the moment before is one column of the graph.
export const sample = (traffic, at = performance.now()) => {
  const now = { at, cache: traffic.bytes_from_cache, peer: traffic.bytes_from_peers, origin: traffic.bytes_from_origin };
  if (before && now.at > before.at) {
    const seconds = (now.at - before.at) / 1000;
    samples.push(Object.fromEntries(SOURCES.map(([key]) => [key, Math.max(0, now[key] - before[key]) / seconds])));
    if (samples.length > KEPT) samples.shift();
  }
  before = now;
};
export const rate = key => samples.length ? samples[samples.length - 1][key] : 0;

const ceiling = value => { let top = 1024; while (top < value) top *= 2; return top; };

export const graph = svg => {
  clear(svg);
  // drawn for the size it has, so that texts keep theirs
  const [width, height, left, bottom] = [svg.clientWidth || 720, svg.clientHeight || 180, 64, 24];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const top = ceiling(Math.max(...samples.map(s => s.cache + s.peer + s.origin), 0));
  const x = i => left + (width - left) * (KEPT - samples.length + i) / (KEPT - 1);
  const y = value => (height - bottom - 6) * (1 - value / top) + 6;
  for (const part of [0, .5, 1]) {
    make(svg, "line", { class: "grid", x1: left, x2: width, y1: y(top * part), y2: y(top * part) });
    make(svg, "text", { x: left - 6, y: y(top * part) + 4, "text-anchor": "end" }, bytes(top * part) + "/s");
  }
  for (const back of width > 500 ? [120, 90, 60, 30, 0] : [120, 60, 0]) {
    make(svg, "text", { x: left + (width - left) * (1 - back / 120), y: height - 5, "text-anchor": back === 0 ? "end" : back === 120 ? "start" : "middle" }, back ? "−" + back + " s" : "now");
  }
  const floor = samples.map(() => 0);
  for (const [key] of SOURCES) {
    const roof = samples.map((s, i) => floor[i] + s[key]);
    if (samples.length > 1) {
      const there = roof.map((v, i) => x(i).toFixed(1) + " " + y(v).toFixed(1));
      const back = floor.map((v, i) => x(i).toFixed(1) + " " + y(v).toFixed(1)).reverse();
      make(svg, "path", { class: "area-" + key, d: "M" + there.join("L") + "L" + back.join("L") + "Z" });
    }
    roof.forEach((v, i) => { floor[i] = v; });
  }
  svg.firstElementChild.textContent = "Bytes a second, the last two minutes; now " + SOURCES.map(([key, name]) => bytes(rate(key)) + " from " + name).join(", ");
};

// This node in the middle, the origin above, neighbours around; a wire is as thick as what went over it.
export const map = (svg, status) => {
  clear(svg);
  const [width, cx, cy] = [360, 180, 130];
  const peers = status.peers.slice(0, 12), more = status.peers.length - peers.length;
  const most = Math.max(1, status.traffic.bytes_from_origin, ...peers.map(p => p.bytes_received + p.bytes_given));
  const thick = n => n ? 1.5 + 6.5 * Math.sqrt(n / most) : 1;
  const wire = (x, y, n, kind) => make(svg, "path", { class: "wire " + (n ? kind : "quiet"), d: `M${cx} ${cy}L${x} ${y}`, "stroke-width": thick(n).toFixed(1) });
  const shortened = name => name.length > 16 ? name.slice(0, 15) + "…" : name;
  const node = (x, y, name, under) => {
    make(svg, "circle", { class: "dot", cx: x, cy: y, r: 9 });
    make(svg, "text", { class: "label", x, y: y + 22 }, shortened(name));
    make(svg, "text", { class: "under", x, y: y + 33 }, under);
  };
  const places = peers.map((peer, i) => {
    const share = peers.length === 1 ? .5 : i / (peers.length - 1), angle = Math.PI * (1.05 - 1.1 * share);
    return [cx + 132 * Math.cos(angle), 118 + 76 * Math.sin(angle), peer];
  });
  wire(cx, 22, status.traffic.bytes_from_origin, "up");
  places.forEach(([x, y, peer]) => wire(x, y, peer.bytes_received + peer.bytes_given, "peer"));
  make(svg, "circle", { class: "dot origin", cx, cy: 22, r: 9 });
  make(svg, "text", { x: cx + 16, y: 20 }, "origin servers");
  make(svg, "text", { x: cx + 16, y: 32 }, bytes(status.traffic.bytes_from_origin));
  places.forEach(([x, y, peer]) => node(x, y, peer.name, bytes(peer.bytes_received + peer.bytes_given)));
  make(svg, "circle", { class: "dot self", cx, cy, r: 13 });
  make(svg, "text", { class: "label self", x: cx - 18, y: cy - 8 }, shortened(status.name));
  if (more > 0) make(svg, "text", { x: width - 4, y: 236, "text-anchor": "end" }, "and " + more + " more");
  svg.firstElementChild.textContent = status.name + " with " + status.peers.length + " neighbours: " + peers.map(p => p.name + " " + bytes(p.bytes_received + p.bytes_given)).join(", ");
};

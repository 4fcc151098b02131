"use strict";
// Mouse, fingers and keys.

function connect(page) {
  const clicks = {
    previous: () => page.step(-1),
    next: () => page.step(1),
    clear: () => page.clear(),
    erase: () => page.erase(!page.pad.erasing),
    center: () => page.center(),
    open: () => page.openAll(),
  };
  for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", act);
  byId("closing").addEventListener("input", (event) =>
    page.closeFromEnd(Number(event.target.value)),
  );
  byId("color").addEventListener("input", (event) => {
    page.pad.ink = [1, 3, 5].map((i) => parseInt(event.target.value.slice(i, i + 2), 16));
  });
  byId("color-label").hidden = page.pad.channels === 1;
  for (const id of ["center", "center-key"]) byId(id).hidden = page.pad.channels > 1;
  for (const layerMap of page.maps) connectMap(page, layerMap);
  document.addEventListener("keydown", (event) => pressed(page, event));
  window.addEventListener("resize", () => {
    page.pad.draw();
    page.redraw();
  });
}

function connectMap(page, layerMap) {
  const { canvas } = layerMap;
  canvas.addEventListener("pointermove", (event) => page.select(layerMap.at(event)));
  let reads = null; // the layer that a finger taps for the first time
  canvas.addEventListener("pointerdown", (event) => {
    const place = event.pointerType === "mouse" ? null : layerMap.at(event);
    reads = place && page.selected?.layer !== place.layer ? place.layer : null;
  });
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") page.select(null);
  });
  canvas.addEventListener("click", (event) => {
    const place = layerMap.at(event);
    if (place && place.layer === reads) page.select(place);
    else if (place) page.toggle(place.layer);
  });
  canvas.addEventListener("keydown", (event) => pressedOnMap(page, event));
  canvas.addEventListener("focus", () => {
    if (canvas.matches(":focus-visible") && !page.selected) page.select({ layer: 0, unit: null });
  });
  canvas.addEventListener("blur", () => page.select(null));
}

// Keys of the browser and the system
function isShortcut(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

function pressedOnMap(page, event) {
  if (isShortcut(event)) return;
  const place = page.selected || { layer: 0, unit: null };
  const { channels } = page.found.blocks[place.layer].gate;
  const within = (number, count) => Math.min(Math.max(number, 0), count - 1);
  const unit = place.unit === null ? -1 : place.unit;
  const moves = {
    ArrowUp: { ...place, layer: within(place.layer - 1, page.network.depth) },
    ArrowDown: { ...place, layer: within(place.layer + 1, page.network.depth) },
    ArrowLeft: { ...place, unit: within(unit - 1, channels) },
    ArrowRight: { ...place, unit: within(unit + 1, channels) },
  };
  if (moves[event.key]) page.select(moves[event.key]);
  else if (event.key === "Enter" || event.key === " ") page.toggle(place.layer);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function pressed(page, event) {
  const isSlid = event.target.matches("input") && event.key.startsWith("Arrow");
  if (isShortcut(event) || isSlid) return;
  const keys = {
    ArrowLeft: () => page.step(-1),
    ArrowRight: () => page.step(1),
    Backspace: () => page.clear(),
    Delete: () => page.clear(),
    c: () => page.pad.channels === 1 && page.center(),
    e: () => page.erase(!page.pad.erasing),
    o: () => page.openAll(),
  };
  const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

const description = JSON.parse(byId("description").textContent);
const page = new Page(description, new Network(description));
connect(page);

"use strict";
// Sentences about what the page shows.

/** What is on the pad. */
function caption({ example, examples, pad, description }) {
  if (example === null && pad.isEmpty) return pad.guide ? "Draw here: fill the box." : "Draw here.";
  if (example === null)
    return pad.guide ? "Your drawing, which the network sees scaled to the box." : "Your drawing.";
  const name = description.classes[examples[example].label];
  return `Image ${example + 1} of ${examples.length}, labeled ${name}.`;
}

/** The answer and the open gates, as nodes. */
function summary({ closed, found, intact, description, example, pad }) {
  if (example === null && pad.isEmpty) return ["There is nothing to see on the pad yet."];
  const says = (probabilities) => {
    const best = probabilities.indexOf(Math.max(...probabilities));
    return [element("strong", "", description.classes[best]), ` (${percent(probabilities[best])})`];
  };
  const layers = closed.size === 1 ? "1 layer" : `${closed.size} layers`;
  const start = intact ? `With ${layers} closed the network says ` : "The network says ";
  const beside = intact ? ["; with all open, ", ...says(intact)] : [];
  return [start, ...says(found.probabilities), ...beside, ". ", openGates(found.blocks)];
}

/** How many gates are open, and in which layer the largest share of them. */
function openGates(blocks) {
  const counts = blocks.map(({ gate }) => gate.values.reduce((n, t) => n + (t > 0.5), 0));
  const shares = counts.map((count, i) => count / blocks[i].gate.values.length);
  const count = counts.reduce((a, b) => a + b, 0);
  const all = blocks.reduce((n, { gate }) => n + gate.values.length, 0);
  const most = shares.indexOf(Math.max(...shares));
  const of = `of its ${grouped(all)} gates`;
  if (!count) return `None ${of} is open (above 0.5).`;
  if (count === 1) return `One ${of} is open (above 0.5), in layer ${most + 1}.`;
  const there = `layer ${most + 1} has the largest share, ${percent(shares[most])}`;
  return `${grouped(count)} ${of} are open (above 0.5); ${there}.`;
}

/** The layer and cell under the mouse or the arrow keys. */
function readout({ selected, found, closed, description }) {
  if (!selected)
    return "Point at a cell, or tap it, to read it. Click a row to close its layer, or to open it again.";
  const { layer, unit } = selected;
  const { gate, output } = found.blocks[layer];
  const name = `Layer ${layer + 1} (${description.layers[layer]})`;
  const open = `mean gate ${mean(gate.values).toFixed(2)}`;
  const state = closed.has(layer) ? "closed: it only carries its input" : open;
  if (unit === null || unit >= gate.channels) return `${name}, ${state}.`;
  const cell = gate.height * gate.width > 1 ? `Map ${unit + 1}, means` : `Unit ${unit + 1}`;
  const [t, y] = [gate, output].map((x) => signed(mean(channel(x, unit))));
  return `${name}, ${state}. ${cell}: gate ${t}, output ${y}.`;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}

function channel({ channels, values }, index) {
  return values.filter((_, i) => i % channels === index);
}

function signed(number) {
  return number.toFixed(2).replace("-", "−");
}

function grouped(number) {
  return number.toLocaleString("en");
}

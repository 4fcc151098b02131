"use strict";
// The page: what the controls do, and drawing everything anew after each change.

const byId = (id) => document.getElementById(id);

class Page {
  constructor(description, network) {
    this.description = description;
    this.network = network;
    this.examples = decodeExamples(description);
    this.closed = new Set();
    this.closedFromEnd = 0;
    this.times = []; // of the last passes, in ms
    this.selected = null; // {layer, unit} under the mouse or the arrow keys
    this.pad = new Pad(byId("pad"), description.inputShape, description.guide, (what) => this.drawn(what));
    this.chart = new Chart(byId("chart"), description.classes);
    byId("chart").classList.toggle("named", description.classes.some((name) => name.length > 2));
    this.maps = this.makeMaps();
    this.showExample(0);
  }

  makeMaps() {
    const { reach } = this.description.scales.outputs;
    const gates = {
      scale: makeScale(GATES, this.description.scales.gates, false),
      tensorOf: (block) => block.gate,
      barOf: (block) => mean(block.gate.values),
      barTitle: "mean",
      wires: true,
    };
    const outputs = {
      scale: makeScale(OUTPUTS, this.description.scales.outputs, true),
      tensorOf: (block) => block.output,
      barOf: (block) => block.change,
      barTitle: "change",
      wires: false,
    };
    drawLegend(byId("gates-legend"), gates.scale, [0, 1, 0.5, 0.1, 0.01]);
    drawLegend(byId("outputs-legend"), outputs.scale, [0, -reach, reach, -reach / 10, reach / 10]);
    return [new LayerMap(byId("gates"), gates), new LayerMap(byId("outputs"), outputs)];
  }

  // What the controls do

  showExample(index) {
    const count = this.examples.length;
    this.example = count ? (index + count) % count : null;
    if (count) this.pad.show(this.examples[this.example].pixels);
    this.stale();
  }

  step(by) {
    this.showExample(this.example === null ? (by > 0 ? 0 : -1) : this.example + by);
  }

  clear() {
    this.example = null;
    this.pad.clear();
    this.stale();
  }

  erase(on) {
    this.pad.erasing = on;
    byId("erase").setAttribute("aria-pressed", on);
  }

  centre() {
    this.pad.centre();
    this.stale();
  }

  /** A drawing starts on an empty pad, unless it paints in colour or erases. */
  drawn(what) {
    if (what === "begin" && this.example !== null) {
      const overPicture = this.pad.channels > 1 || this.pad.erasing;
      if (!overPicture) this.pad.clear();
      this.example = null;
    }
    this.stale();
  }

  closeFromEnd(count) {
    const first = this.network.depth - count;
    for (let layer = 0; layer < this.network.depth; layer++) {
      if (layer >= first) this.closed.add(layer);
      else if (layer >= this.network.depth - this.closedFromEnd) this.closed.delete(layer);
    }
    this.closedFromEnd = count;
    this.stale();
  }

  toggle(layer) {
    if (!this.closed.delete(layer)) this.closed.add(layer);
    this.stale();
  }

  openAll() {
    this.closed.clear();
    this.closedFromEnd = 0;
    byId("closing").value = 0;
    this.stale();
  }

  select(place) {
    this.selected = place;
    this.stale();
  }

  // Drawing

  /** Draws anew before the next frame, once however much has changed until then. */
  stale() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const start = performance.now();
    this.found = this.network.run(this.pad.pixels, this.closed);
    this.times = [performance.now() - start, ...this.times].slice(0, 15);
    const intact = this.closed.size ? this.network.run(this.pad.pixels).probabilities : null;
    this.chart.draw(this.found.probabilities, intact);
    byId("maps").classList.toggle("stacked", this.found.blocks.some((block) => block.gate.height > 1));
    for (const layerMap of this.maps) layerMap.draw(this.found.blocks, this.closed, this.selected);
    byId("tick-note").hidden = !intact;
    byId("open").disabled = !this.closed.size;
    byId("closed-count").textContent = `${this.closed.size} of ${this.network.depth} closed`;
    byId("caption").textContent = this.caption();
    byId("summary").replaceChildren(...this.summary(intact));
    byId("readout").textContent = this.readout();
    byId("time").textContent = `${median(this.times).toFixed(1)} ms a pass.`;
  }

  caption() {
    if (this.example === null) return this.pad.isEmpty ? "Draw here." : "Your drawing.";
    const name = this.description.classes[this.examples[this.example].label];
    return `Test image ${this.example + 1} of ${this.examples.length}, labelled ${name}.`;
  }

  summary(intact) {
    const says = (probabilities) => {
      const best = probabilities.indexOf(Math.max(...probabilities));
      return [element("strong", "", this.description.classes[best]), ` (${percent(probabilities[best])})`];
    };
    const layers = this.closed.size === 1 ? "layer" : "layers";
    const answer = intact
      ? [`With ${this.closed.size} ${layers} closed the network says `, ...says(this.found.probabilities), "; with all open, ", ...says(intact), ". "]
      : ["The network says ", ...says(this.found.probabilities), ". "];
    return [...answer, this.openGates()];
  }

  openGates() {
    const open = this.found.blocks.map(({ gate }) => gate.values.reduce((n, t) => n + (t > 0.5), 0));
    const all = this.found.blocks.reduce((n, { gate }) => n + gate.values.length, 0);
    const count = open.reduce((a, b) => a + b, 0);
    const of = `of its ${all.toLocaleString("en")} gates`;
    if (!count) return `None ${of} is open (above 0.5).`;
    const most = open.indexOf(Math.max(...open));
    if (count === 1) return `One ${of} is open (above 0.5), in layer ${most + 1}.`;
    return `${count.toLocaleString("en")} ${of} are open (above 0.5); layer ${most + 1} has the most, ${open[most].toLocaleString("en")}.`;
  }

  readout() {
    if (!this.selected) return "Point at a cell to read it. Click a row to close its layer, or to open it again.";
    const { layer, unit } = this.selected;
    const block = this.found.blocks[layer];
    const name = `Layer ${layer + 1} (${this.description.layers[layer]})`;
    const state = this.closed.has(layer) ? "closed: it hands on what it gets" : `mean gate ${mean(block.gate.values).toFixed(2)}`;
    if (unit === null || unit >= block.gate.channels) return `${name}, ${state}.`;
    const isImage = block.gate.height * block.gate.width > 1;
    const cell = isImage ? `map ${unit + 1}, means: ` : `unit ${unit + 1}: `;
    const [gate, output] = [block.gate, block.output].map((x) => signed(mean(channel(x, unit))));
    return `${name}, ${state}. ${cell[0].toUpperCase()}${cell.slice(1)}gate ${gate}, output ${output}.`;
  }
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

/** The test images of the page: [{pixels, label}]. */
function decodeExamples({ inputShape, examples }) {
  const size = inputShape[0] * inputShape[1] * inputShape[2];
  const pixels = decodeBytes(examples.images);
  return examples.labels.map((label, i) => ({ label, pixels: pixels.subarray(i * size, (i + 1) * size) }));
}

"use strict";
// The page: what the controls do, and redrawing everything after each change.

class Page {
  constructor(description, network) {
    this.description = description;
    this.network = network;
    this.examples = decodeExamples(description);
    this.closed = new Set();
    this.closedFromEnd = 0;
    this.times = []; // of the last passes, in ms
    this.selected = null; // {layer, unit} under the mouse or the arrow keys
    this.pad = new Pad(byId("pad"), description, (what) => this.drawn(what));
    byId("chart").classList.toggle(
      "named",
      description.classes.some((name) => name.length > 2),
    );
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

  center() {
    this.example = null;
    this.pad.show(this.pad.fitted());
    this.stale();
  }

  /** A drawing starts on an empty pad, unless it paints in color or erases. */
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
    this.redraw();
  }

  // Drawing

  /** Runs the network again, and draws. */
  stale() {
    this.outdated = true;
    this.redraw();
  }

  /** Draws once before the next frame, however many changes precede it. */
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  run() {
    const start = performance.now();
    // The network sees a drawing of any place and size normalized like the images of the data set.
    const drawn = this.example === null && this.pad.guide;
    const pixels = drawn ? this.pad.fitted() : this.pad.pixels;
    this.found = this.network.run(pixels, this.closed);
    this.outdated = false;
    this.times = [performance.now() - start, ...this.times].slice(0, 15);
    this.intact = this.closed.size ? this.network.run(pixels).probabilities : null;
  }

  draw() {
    if (this.outdated) this.run();
    const { probabilities, blocks } = this.found;
    const blank = this.example === null && this.pad.isEmpty; // no answer to that
    const shown = blank ? [probabilities.map(() => 0), null] : [probabilities, this.intact];
    drawChart(this.description.classes, ...shown);
    byId("maps").classList.toggle(
      "stacked",
      blocks.some(({ gate }) => gate.height > 1),
    );
    for (const layerMap of this.maps) layerMap.draw(blocks, this.closed, this.selected);
    byId("tick-note").hidden = blank || !this.intact;
    byId("open").disabled = !this.closed.size;
    say("closed-count", `${this.closed.size} of ${this.network.depth} closed`);
    byId("caption").textContent = caption(this);
    say("summary", ...summary(this));
    say("readout", readout(this));
    byId("time").textContent = `${median(this.times).toFixed(1)} ms a pass.`;
  }
}

/** The images of the page: [{pixels, label}]. */
function decodeExamples({ inputShape, examples }) {
  const size = inputShape[0] * inputShape[1] * inputShape[2];
  const pixels = decodeBytes(examples.images);
  return examples.labels.map((label, i) => ({
    label,
    pixels: pixels.subarray(i * size, (i + 1) * size),
  }));
}

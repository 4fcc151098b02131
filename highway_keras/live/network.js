"use strict";
// The network of the page: its steps one after the other, and what its gates do on the way.

class Network {
  /** `description` is the page's JSON. */
  constructor(description) {
    const withWeights = (step) =>
      Object.fromEntries(Object.entries(step).map(([k, v]) => [k, v?.shape ? unpack(v) : v]));
    this.inputShape = description.inputShape;
    this.steps = description.steps.map((step) => ({
      ...withWeights(step),
      ...(step.transforms && { transforms: step.transforms.map(withWeights) }),
    }));
    this.depth = this.steps.filter((step) => step.op === "highway").length;
  }

  /**
   * One pass. `image` holds gray levels 0 to 255, row by row, channels last; `closed` is a Set of
   * the numbers of the highway layers whose transform gates are forced to 0.
   * Returns {probabilities, blocks}; a block is {gate, output, change}: two tensors, and the mean
   * of |output - input|.
   */
  run(image, closed = new Set()) {
    let x = tensor(...this.inputShape, Float32Array.from(image));
    const blocks = [];
    for (const step of this.steps) {
      if (step.op === "highway") {
        const block = highway(x, step.transforms, closed.has(blocks.length));
        blocks.push(block);
        x = block.output;
      } else {
        x = STEPS[step.op](x, step);
      }
    }
    return { probabilities: x.values, blocks };
  }
}

const STEPS = {
  activate: (x, step) => ACTIVATIONS[step.activation](x),
  contrast: (x, step) => normalizeContrast(x, step.epsilon),
  flatten: (x) => tensor(1, 1, x.values.length, x.values),
  pool,
  rescale: (x, step) => map(x, (v) => v * step.scale + step.offset),
  subtract: (x, step) => map(x, (v, i) => v - step.image.values[i]),
  transform,
};

/** y = x + T (H - x), or y = H T + x C where the carry gate C is learned. */
function highway(x, [h, t, c], closed) {
  const gate = closed ? map(x, () => 0) : transform(x, t);
  const state = closed ? x : transform(x, h);
  const carry = c && transform(x, c).values;
  const output = map(x, (v, i) =>
    c
      ? state.values[i] * gate.values[i] + v * carry[i]
      : v + gate.values[i] * (state.values[i] - v),
  );
  const change = output.values.reduce((sum, v, i) => sum + Math.abs(v - x.values[i]), 0);
  return { gate, output, change: change / x.values.length };
}

"use strict";
// What layers compute. A tensor is {height, width, channels, values}, channels last; anything
// but an image is 1 by 1. Sums are taken in double precision, results kept in single.

function tensor(height, width, channels, values) {
  return { height, width, channels, values: values || new Float32Array(height * width * channels) };
}

/** A tensor of the size of `x` with `f(value, index)` in it. */
function map(x, f) {
  const y = tensor(x.height, x.width, x.channels);
  for (let i = 0; i < y.values.length; i++) y.values[i] = f(x.values[i], i);
  return y;
}

const ACTIVATIONS = {
  linear: (x) => x,
  relu: (x) => map(x, (z) => (z > 0 ? z : 0)),
  sigmoid: (x) => map(x, (z) => 1 / (1 + Math.exp(-z))),
  softmax,
  tanh: (x) => map(x, Math.tanh),
};

function softmax(x) {
  const y = tensor(x.height, x.width, x.channels);
  for (let start = 0; start < y.values.length; start += x.channels) {
    const logits = x.values.subarray(start, start + x.channels);
    const highest = Math.max(...logits);
    const powers = Array.from(logits, (z) => Math.exp(z - highest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    powers.forEach((power, i) => (y.values[start + i] = power / total));
  }
  return y;
}

/** Mean 0 and standard deviation 1 over a whole image; `epsilon` is the least divisor. */
function normalizeContrast(x, epsilon) {
  const mean = x.values.reduce((sum, v) => sum + v, 0) / x.values.length;
  const variance = x.values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / x.values.length;
  const divisor = Math.max(Math.sqrt(variance), epsilon);
  return map(x, (v) => (v - mean) / divisor);
}

/**
 * How a window moves along one axis: how many results it gives, and how many positions of padding
 * come before the axis. "same" pads to ceil(size / stride) results, as TensorFlow does: of an odd
 * number of positions, the extra one goes to the end.
 */
function windows(size, reach, stride, padding) {
  if (padding !== "same") return { count: Math.floor((size - reach) / stride) + 1, before: 0 };
  const count = Math.ceil(size / stride);
  return { count, before: Math.max((count - 1) * stride + reach - size, 0) >> 1 };
}

/** activation(conv(x, kernel) + bias); the kernel is (height, width, channels in, channels out). */
function transform(x, { kernel, bias, activation, strides, dilation, padding }) {
  const [kernelHeight, kernelWidth, , out] = kernel.shape;
  const down = windows(x.height, (kernelHeight - 1) * dilation[0] + 1, strides[0], padding);
  const across = windows(x.width, (kernelWidth - 1) * dilation[1] + 1, strides[1], padding);
  const z = tensor(down.count, across.count, out);
  const sums = new Float64Array(out);
  for (let row = 0, at = 0; row < z.height; row++) {
    for (let column = 0; column < z.width; column++, at += out) {
      if (bias) sums.set(bias.values);
      else sums.fill(0);
      for (let i = 0; i < kernelHeight; i++) {
        const y = row * strides[0] - down.before + i * dilation[0];
        if (y < 0 || y >= x.height) continue;
        for (let j = 0; j < kernelWidth; j++) {
          const p = column * strides[1] - across.before + j * dilation[1];
          if (p < 0 || p >= x.width) continue;
          addProduct(
            sums,
            x,
            (y * x.width + p) * x.channels,
            kernel.values,
            (i * kernelWidth + j) * x.channels * out,
          );
        }
      }
      z.values.set(sums, at);
    }
  }
  return ACTIVATIONS[activation](z);
}

/** sums += the channels of one position of `x` times one matrix of the kernel. */
function addProduct(sums, x, position, kernel, matrix) {
  for (let channel = 0; channel < x.channels; channel++) {
    const value = x.values[position + channel];
    if (value === 0) continue; // like most values after a ReLU, and in a drawing
    const row = matrix + channel * sums.length;
    for (let k = 0; k < sums.length; k++) sums[k] += value * kernel[row + k];
  }
}

/** The largest or mean value of each window, padding left out; `size` null is the whole image. */
function pool(x, { kind, size, strides, padding }) {
  const [height, width] = size || [x.height, x.width];
  const down = windows(x.height, height, strides[0], padding);
  const across = windows(x.width, width, strides[1], padding);
  const y = tensor(down.count, across.count, x.channels);
  const join = kind === "max" ? Math.max : (sum, value) => sum + value;
  for (let row = 0, at = 0; row < y.height; row++) {
    for (let column = 0; column < y.width; column++) {
      const rows = span(row * strides[0] - down.before, height, x.height);
      const columns = span(column * strides[1] - across.before, width, x.width);
      for (let channel = 0; channel < x.channels; channel++, at++) {
        let joined = kind === "max" ? -Infinity : 0;
        for (const i of rows) {
          for (const j of columns)
            joined = join(joined, x.values[(i * x.width + j) * x.channels + channel]);
        }
        y.values[at] = kind === "max" ? joined : joined / (rows.length * columns.length);
      }
    }
  }
  return y;
}

/** The positions from `start` on, `length` of them, that lie within 0 and `size`. */
function span(start, length, size) {
  const positions = [];
  for (let i = Math.max(start, 0); i < Math.min(start + length, size); i++) positions.push(i);
  return positions;
}

"use strict";
// Colors for numbers. They differ in lightness, so any color vision can tell them apart. Their
// panels are dark in light and dark mode alike.

const PANEL = "#0b0d13";
const INK = "#f4f1ea";
const MUTED = "#8d93a3";
const WIRE = "#59606f";
const CLOSED = "#ff9a56";

/** Closed gates are dark, open ones bright. */
const GATES = [
  "#171a26",
  "#2a1a55",
  "#641a80",
  "#a52c60",
  "#dd513a",
  "#fb9b06",
  "#f9d949",
  "#fcffc9",
];
/** Blue below zero, dark at zero, orange above. */
const OUTPUTS = [
  "#a9dbff",
  "#4fa3e8",
  "#1d5c9c",
  "#162c47",
  "#171a26",
  "#4a2413",
  "#a8431d",
  "#ee8148",
  "#ffd0ad",
];

/** 256 colors as bytes, red, green, blue, from first to last through all of `stops`. */
function ramp(stops) {
  const channels = stops.map((stop) => [1, 3, 5].map((i) => parseInt(stop.slice(i, i + 2), 16)));
  const table = new Uint8ClampedArray(3 * 256);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1);
    const left = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) {
      table[3 * i + c] =
        channels[left][c] + (place - left) * (channels[left + 1][c] - channels[left][c]);
    }
  }
  return table;
}

/**
 * A scale of colors. Its `place` maps numbers up to `reach` to positions from 0 to 1; if `signed`,
 * 0 is in the middle. A `power` below 1 gives small numbers more room.
 */
function makeScale(stops, { reach, power }, signed) {
  const size = (value) => Math.min(Math.abs(value) / reach, 1) ** power;
  const place = signed ? (value) => 0.5 + 0.5 * Math.sign(value) * size(value) : size;
  return { stops, colors: ramp(stops), place };
}

/** Fills a legend: the ramp, and below it those of `ticks` that have room, the first ones first. */
function drawLegend(legend, { stops, place }, ticks) {
  const ramp = element("span", "ramp");
  ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  legend.append(ramp);
  const taken = [];
  for (const value of ticks) {
    const left = place(value);
    if (taken.some((other) => Math.abs(left - other) < 0.13)) continue;
    taken.push(left);
    const tick = element("span", "tick-label", `${value}`.replace("-", "−"));
    tick.style.left = `${100 * left}%`;
    legend.append(tick);
  }
}

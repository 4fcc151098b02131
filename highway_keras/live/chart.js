"use strict";
// The probabilities as bars. While layers are closed, ticks mark those of the whole network.

const MOST_CLASSES = 12; // of more, only the ten most probable are shown

function drawChart(names, probabilities, intact) {
  let shown = [...probabilities.keys()];
  const best = shown.reduce((a, b) => (probabilities[b] > probabilities[a] ? b : a));
  if (shown.length > MOST_CLASSES) {
    shown = shown.sort((a, b) => probabilities[b] - probabilities[a]).slice(0, 10);
  }
  const rows = shown.map((i) => chartRow(names[i], probabilities[i], intact?.[i], i === best));
  byId("chart").replaceChildren(...rows);
}

function chartRow(name, probability, before, isBest) {
  const row = element("li", isBest && probability > 0 ? "best" : "");
  const bar = element("span", "bar");
  const fill = element("span", "fill");
  fill.style.width = `${100 * probability}%`;
  bar.append(fill);
  if (before >= 0.005) {
    const tick = element("span", "tick");
    tick.style.left = `${100 * before}%`;
    bar.append(tick);
  }
  const label = element("span", "class", name);
  label.title = name; // where it is cut short
  row.append(label, bar, element("span", "percent", percent(probability)));
  return row;
}

/** A share in words: "97 %", "0.3 %", and "0 %" only of what is next to nothing. */
function percent(share) {
  const digits = share >= 0.0005 && share < 0.1 ? 1 : 0;
  return `${(100 * share).toFixed(digits)} %`;
}

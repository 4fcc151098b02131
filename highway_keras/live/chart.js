"use strict";
// The probabilities as bars. While layers are closed, ticks mark those of the whole network.

const MOST_CLASSES = 12; // of more, only the ten most probable are shown

class Chart {
  constructor(list, names) {
    this.list = list;
    this.names = names;
  }

  draw(probabilities, intact) {
    let shown = [...probabilities.keys()];
    const best = shown.reduce((a, b) => (probabilities[b] > probabilities[a] ? b : a));
    if (shown.length > MOST_CLASSES) {
      shown = shown.sort((a, b) => probabilities[b] - probabilities[a]).slice(0, 10);
    }
    this.list.replaceChildren(...shown.map((i) => this.row(i, probabilities, intact, i === best && probabilities[i] > 0)));
  }

  row(i, probabilities, intact, isBest) {
    const row = element("li", isBest ? "best" : "");
    const bar = element("span", "bar");
    const fill = element("span", "fill");
    fill.style.width = `${100 * probabilities[i]}%`;
    bar.append(fill);
    if (intact && intact[i] >= 0.005) {
      const tick = element("span", "tick");
      tick.style.left = `${100 * intact[i]}%`;
      bar.append(tick);
    }
    const name = element("span", "class", this.names[i]);
    name.title = this.names[i]; // where it is cut short
    row.append(
      name,
      bar,
      element("span", "percent", percent(probabilities[i])),
    );
    return row;
  }
}

/** A share in words: "97 %", "0.3 %", and "0 %" only of what is next to nothing. */
function percent(share) {
  const digits = share >= 0.0005 && share < 0.1 ? 1 : 0;
  return `${(100 * share).toFixed(digits)} %`;
}

"use strict";
// A map of all gated layers: a row for each, a cell for each unit; a cell of a
// convolutional layer is a feature map, drawn as a small image. Beside each row stands a bar.

const GUTTER = 38; // for the layers' numbers
const BARS = 52;
const DENSE_HEIGHT = 470; // what all dense rows together aim at
const ROW = { dense: [5, 20], image: [12, 46] }; // least and greatest height

class LayerMap {
  /**
   * `scale` gives the colors, `tensorOf` a block's tensor to show, `barOf` the number of its bar;
   * with `wires` the cells of closed layers are drawn as what they then are.
   */
  constructor(canvas, { scale, tensorOf, barOf, barTitle, wires }) {
    Object.assign(this, { canvas, scale, tensorOf, barOf, barTitle, wires });
    this.images = [];
  }

  draw(blocks, closed, selected) {
    const width = this.canvas.clientWidth;
    this.rows = placeRows(blocks.map(this.tensorOf), width - GUTTER - BARS);
    const last = this.rows[this.rows.length - 1];
    const context = fitted(this.canvas, width, last.top + last.height + 4);
    context.imageSmoothingEnabled = false;
    this.head(context);
    const longest = Math.max(...blocks.map(this.barOf), 1e-6);
    blocks.forEach((block, i) => {
      this.cells(context, this.rows[i], this.tensorOf(block), i);
      this.bar(context, this.rows[i], this.barOf(block) / longest);
      if (closed.has(i)) this.close(context, this.rows[i]);
    });
    this.numbers(context, selected);
    if (selected) this.frame(context, this.rows[selected.layer], selected.unit);
  }

  /** The layer and unit at a place of the canvas, or null. */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const layer = this.rows.findIndex((row) => y >= row.top && y < row.top + row.height);
    if (layer < 0) return null;
    const row = this.rows[layer];
    const unit = Math.floor((x - GUTTER) / row.cell);
    return { layer, unit: unit >= 0 && unit < row.units ? unit : null };
  }

  head(context) {
    context.font = "11px Inter, system-ui, sans-serif";
    context.fillStyle = MUTED;
    context.textBaseline = "middle";
    const { units, cell } = this.rows[0];
    context.textAlign = "left";
    context.fillText(this.rows[0].isImage ? "map 1" : "unit 1", GUTTER, 10);
    context.fillText(this.barTitle, this.barsFrom(this.rows[0]), 10);
    context.textAlign = "right";
    context.fillText("layer", GUTTER - 8, 10);
    if (this.rows.every((row) => row.units === units))
      context.fillText(units, GUTTER + units * cell, 10);
  }

  cells(context, row, { height, width, channels, values }, layer) {
    const image = (this.images[layer] ??= offscreen(width * channels, height));
    for (let y = 0, from = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        for (let unit = 0; unit < channels; unit++, from++) {
          const color = 3 * Math.round(255 * this.scale.place(values[from]));
          const to = 4 * (y * width * channels + unit * width + x);
          for (let c = 0; c < 3; c++) image.data.data[to + c] = this.scale.colors[color + c];
        }
      }
    }
    image.context.putImageData(image.data, 0, 0);
    context.drawImage(image.canvas, GUTTER, row.top, row.cell * row.units, row.height);
    this.gaps(context, row);
  }

  gaps(context, row) {
    const gap = row.cell < 6 ? 0.5 : 1;
    context.fillStyle = PANEL;
    for (let unit = 0; unit <= row.units; unit++) {
      context.fillRect(GUTTER + unit * row.cell - gap / 2, row.top, gap, row.height);
    }
    context.fillRect(GUTTER, row.top - gap / 2, row.cell * row.units, gap);
  }

  bar(context, row, share) {
    context.fillStyle = MUTED;
    context.fillRect(
      this.barsFrom(row),
      row.top + 0.5,
      (BARS - 12) * share,
      Math.max(row.height - 1.5, 2),
    );
  }

  barsFrom(row) {
    return GUTTER + row.cell * row.units + 8;
  }

  /** Marks a closed layer; a wire for each unit shows that it only carries its input. */
  close(context, row) {
    context.fillStyle = CLOSED;
    context.fillRect(GUTTER - 4, row.top, 2.5, row.height);
    if (!this.wires) return;
    context.fillStyle = PANEL;
    context.fillRect(GUTTER, row.top, row.cell * row.units, row.height);
    context.fillStyle = WIRE;
    for (let unit = 0; unit < row.units; unit++) {
      context.fillRect(GUTTER + (unit + 0.5) * row.cell - 0.5, row.top, 1, row.height);
    }
  }

  numbers(context, selected) {
    const step = [1, 5, 10, 20].find((n) => n * this.rows[0].height >= 12) || 50;
    context.textAlign = "right";
    this.rows.forEach((row, i) => {
      const chosen = selected && selected.layer === i;
      const near = selected && Math.abs(selected.layer - i) * row.height < 12;
      if (!chosen && (near || !(i === 0 || (i + 1) % step === 0))) return;
      context.fillStyle = chosen ? INK : MUTED;
      context.fillText(i + 1, GUTTER - 8, row.top + row.height / 2 + 0.5);
    });
  }

  frame(context, row, unit) {
    context.strokeStyle = INK;
    context.lineWidth = 1.5;
    context.strokeRect(GUTTER - 1, row.top - 1, row.cell * row.units + 2, row.height + 2);
    if (unit === null || unit >= row.units) return;
    context.strokeRect(GUTTER + unit * row.cell, row.top, row.cell, row.height);
  }
}

/** Top, height, number of cells and width of a cell for each row, within `width` in all. */
function placeRows(tensors, width) {
  const dense = tensors.filter((x) => x.height * x.width === 1).length;
  let top = 20;
  return tensors.map((x) => {
    const isImage = x.height * x.width > 1;
    const [least, greatest] = isImage ? ROW.image : ROW.dense;
    const cell = Math.min(width / x.channels, isImage ? ROW.image[1] : Infinity);
    const wanted = isImage ? (cell * x.height) / x.width : DENSE_HEIGHT / dense;
    const height = Math.min(Math.max(wanted, least), greatest);
    const row = { top, height, cell, units: x.channels, isImage };
    top += row.height;
    return row;
  });
}

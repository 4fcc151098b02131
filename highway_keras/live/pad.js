"use strict";
// The pad: an image of the network's own size, drawn on with mouse, finger or pen.

class Pad {
  /**
   * `inputShape` is [height, width, channels]; `paper` is the gray level of an empty pad; `guide`
   * is a box to draw in, or null. `changed` is called with "begin" before a stroke, and with
   * "stroke" after each of its segments.
   */
  constructor(canvas, { inputShape, paper, guide }, changed) {
    [this.height, this.width, this.channels] = inputShape;
    Object.assign(this, { canvas, paper, guide, changed });
    this.pixels = new Uint8ClampedArray(this.height * this.width * this.channels).fill(paper);
    this.ink = Array(this.channels).fill(255 - paper);
    this.erasing = false;
    this.radius = Math.max(0.6, 0.04 * this.width);
    this.small = offscreen(this.width, this.height);
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, (event) => event.isPrimary && (this.last = null));
  }

  show(pixels) {
    this.pixels.set(pixels);
    this.draw();
  }

  clear() {
    this.show(new Uint8ClampedArray(this.pixels.length).fill(this.paper));
  }

  /**
   * The drawing, normalized as the digits of MNIST were: scaled so that its longer side equals that
   * of the guide, and moved so that its center of mass is in the middle; only moved if there is no
   * guide.
   */
  fitted() {
    const { height, width } = this;
    const ink = (row, column) =>
      row < 0 || column < 0 || row >= height || column >= width
        ? 0
        : Math.abs(this.pixels[row * width + column] - this.paper);
    let [mass, down, across] = [0, 0, 0];
    let [top, left, bottom, right] = [height, width, 0, 0];
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        const value = ink(row, column);
        mass += value;
        down += value * (row + 0.5);
        across += value * (column + 0.5);
        if (value < 64) continue;
        [top, bottom] = [Math.min(top, row), Math.max(bottom, row + 1)];
        [left, right] = [Math.min(left, column), Math.max(right, column + 1)];
      }
    }
    if (!mass || bottom <= top) return this.pixels;
    const side = this.guide && Math.max(this.guide[2] - this.guide[0], this.guide[3] - this.guide[1]);
    const scale = side ? side / Math.max(bottom - top, right - left) : 1;
    const between = (y, x) => {
      const [row, column] = [Math.floor(y - 0.5), Math.floor(x - 0.5)];
      const [v, u] = [y - 0.5 - row, x - 0.5 - column];
      const upper = (1 - u) * ink(row, column) + u * ink(row, column + 1);
      const lower = (1 - u) * ink(row + 1, column) + u * ink(row + 1, column + 1);
      return (1 - v) * upper + v * lower;
    };
    const fitted = new Uint8ClampedArray(this.pixels.length);
    const parts = [0.125, 0.375, 0.625, 0.875]; // of a pixel, whose mean is taken
    for (let row = 0, at = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        let sum = 0;
        for (const dy of parts) {
          for (const dx of parts) {
            sum += between(
              (row + dy - height / 2) / scale + down / mass,
              (column + dx - width / 2) / scale + across / mass,
            );
          }
        }
        fitted[at++] = Math.abs(this.paper - sum / parts.length ** 2);
      }
    }
    return fitted;
  }

  get isEmpty() {
    return this.pixels.every((value) => value === this.paper);
  }

  begin(event) {
    if (event.button > 0 || !event.isPrimary) return; // not a second finger
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.changed("begin");
    // A stroke adds its ink to what was there once, however often it crosses itself.
    this.under = this.pixels.slice();
    this.cover = new Float32Array(this.height * this.width);
    this.last = this.place(event);
    this.line(this.last, this.last);
  }

  move(event) {
    if (!this.last || !event.isPrimary) return;
    const events = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
    for (const step of events.length ? events : [event]) {
      const place = this.place(step);
      this.line(this.last, place);
      this.last = place;
    }
  }

  /** Where an event is, in pixels of the image. */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [
      ((event.clientX - box.left) / box.width) * this.width,
      ((event.clientY - box.top) / box.height) * this.height,
    ];
  }

  line(from, to) {
    const radius = this.erasing ? 1.6 * this.radius : this.radius;
    for (let row = 0, at = 0; row < this.height; row++) {
      for (let column = 0; column < this.width; column++, at++) {
        const distance = distanceToLine([column + 0.5, row + 0.5], from, to);
        const cover = Math.min(Math.max(radius + 0.5 - distance, 0), 1);
        if (cover > this.cover[at]) this.paint(at, cover);
      }
    }
    this.draw();
    this.changed("stroke");
  }

  paint(at, cover) {
    this.cover[at] = cover;
    for (let c = 0; c < this.channels; c++) {
      const under = this.under[at * this.channels + c];
      const ink = this.erasing ? this.paper : this.ink[c];
      this.pixels[at * this.channels + c] = under + cover * (ink - under);
    }
  }

  draw() {
    const image = this.small.data;
    for (let at = 0; at < this.height * this.width; at++) {
      for (let c = 0; c < 3; c++) {
        image.data[4 * at + c] = this.pixels[at * this.channels + (this.channels === 3 ? c : 0)];
      }
    }
    this.small.context.putImageData(image, 0, 0);
    const scale = this.canvas.clientWidth / this.width;
    const [width, height] = [scale * this.width, scale * this.height];
    const context = fitted(this.canvas, width, height);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.small.canvas, 0, 0, width, height);
    if (this.guide) this.drawGuide(context, scale);
  }

  /** The box that the digits of the data set lie in. */
  drawGuide(context, scale) {
    const [top, left, bottom, right] = this.guide;
    const box = [left, top, right - left, bottom - top];
    context.setLineDash([3, 4]);
    const gray = 255 - this.paper;
    context.strokeStyle = `rgb(${gray} ${gray} ${gray} / 35%)`;
    context.strokeRect(...box.map((side) => side * scale));
  }
}

function distanceToLine([x, y], [x0, y0], [x1, y1]) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy;
  const share = length ? Math.min(Math.max(((x - x0) * dx + (y - y0) * dy) / length, 0), 1) : 0;
  return Math.hypot(x - x0 - share * dx, y - y0 - share * dy);
}

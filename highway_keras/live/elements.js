"use strict";
// Parts of the document.

const byId = (id) => document.getElementById(id);

function element(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

/** Puts text or nodes into a part, unless it says so already: a screen reader would repeat it. */
function say(id, ...content) {
  const next = document.createElement("p");
  next.append(...content);
  if (next.textContent !== byId(id).textContent) byId(id).replaceChildren(...content);
}

/** The 2D context of a canvas of that size in CSS pixels, sharp on any screen, empty. */
function fitted(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

/** Pixels to draw from, opaque; `context.putImageData(data, 0, 0)` puts them onto the canvas. */
function offscreen(width, height) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const data = new ImageData(width, height);
  data.data.fill(255);
  return { canvas, context: canvas.getContext("2d"), data };
}

"use strict";
// The network's weights, decoded from the text that holds them in the page.

/** Float32Array of little-endian numbers in base64, `format` being "float16" or "float32". */
function decodeWeights(text, format) {
  const bytes = decodeBytes(text);
  const view = new DataView(bytes.buffer);
  const width = format === "float16" ? 2 : 4;
  const values = new Float32Array(bytes.length / width);
  for (let i = 0; i < values.length; i++) {
    values[i] =
      width === 2 ? halfToNumber(view.getUint16(2 * i, true)) : view.getFloat32(4 * i, true);
  }
  return values;
}

function decodeBytes(text) {
  const characters = atob(text.trim());
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** The number that 16 bits stand for in IEEE 754 half precision. */
function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

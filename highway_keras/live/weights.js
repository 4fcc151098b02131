"use strict";
// The network's weights, decoded from the text that holds them in the page.

/**
 * An array of the page, {shape, values}, from its shape and little-endian numbers in base64.
 * Machines with a browser are little-endian, too.
 */
function unpack({ shape, float16, float32 }) {
  const { buffer } = decodeBytes(float32 ?? float16);
  if (float32) return { shape, values: new Float32Array(buffer) };
  return { shape, values: Float32Array.from(new Uint16Array(buffer), halfToNumber) };
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

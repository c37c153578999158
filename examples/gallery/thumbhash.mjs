/** Makes the picture that a ThumbHash stands for: https://evanw.github.io/thumbhash. For browsers and Node. */

/**
 * @param {string} text a ThumbHash in base64
 * @param {number} side pixels of the longer side
 * @returns {{ width: number, height: number, pixels: Uint8ClampedArray }} R G B A
 */
export function pictureOf(text, side = 32) {
  const hash = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  let taken = 0;
  /** The next bits, of each byte the lowest first. */
  const take = (count) => {
    let value = 0;
    for (let bit = 0; bit < count; bit++, taken++) value |= ((hash[taken >> 3] >> taken % 8) & 1) << bit;
    return value;
  };

  // The means of lightness, yellow to blue and red to green, and how strong the strongest frequency of each is.
  const lightness = { mean: take(6) / 63 };
  const yellowToBlue = { mean: take(6) / 31.5 - 1 };
  const redToGreen = { mean: take(6) / 31.5 - 1 };
  lightness.scale = take(5) / 31;
  const hasAlpha = take(1) === 1;
  const shorter = take(3);
  yellowToBlue.scale = (1.25 * take(6)) / 63; // Colours that were rounded away are made up for, as by the format's own decoders.
  redToGreen.scale = (1.25 * take(6)) / 63;
  const isLandscape = take(1) === 1;
  const longer = hasAlpha ? 5 : 7;
  const [across, down] = isLandscape ? [longer, shorter] : [shorter, longer];
  const alpha = hasAlpha ? { mean: take(4) / 15, scale: take(4) / 15 } : undefined;

  const width = Math.max(1, Math.round((side * across) / Math.max(across, down)));
  const height = Math.max(1, Math.round((side * down) / Math.max(across, down)));
  /** The values of a channel at all pixels, from the upper left triangle of so many frequencies across and down. */
  const valuesOf = ({ mean, scale }, across, down) => {
    const values = new Float32Array(width * height).fill(mean);
    for (let v = 0; v < down; v++) {
      for (let u = v > 0 ? 0 : 1; u * down < across * (down - v); u++) {
        const strength = 2 * scale * (take(4) / 7.5 - 1);
        const [columns, rows] = [wave(u, width), wave(v, height)];
        for (let at = 0; at < values.length; at++) values[at] += strength * columns[at % width] * rows[Math.floor(at / width)];
      }
    }
    return values;
  };
  const l = valuesOf(lightness, Math.max(3, across), Math.max(3, down));
  const p = valuesOf(yellowToBlue, 3, 3);
  const q = valuesOf(redToGreen, 3, 3);
  const a = alpha && valuesOf(alpha, 5, 5);

  const pixels = new Uint8ClampedArray(4 * width * height);
  for (let at = 0; at < width * height; at++) {
    const blue = l[at] - (2 / 3) * p[at];
    const red = (3 * l[at] - blue + q[at]) / 2;
    pixels.set([255 * red, 255 * (red - q[at]), 255 * blue, 255 * (a ? a[at] : 1)], 4 * at);
  }
  return { width, height, pixels };
}

function wave(frequency, length) {
  return Float32Array.from({ length }, (_, place) => Math.cos((Math.PI * frequency * (place + 0.5)) / length));
}

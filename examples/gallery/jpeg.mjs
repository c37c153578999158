/**
 * Writes progressive JPEGs (ITU-T T.81, JFIF), of which the worker makes previews while they arrive: the means of all blocks
 * come first, then the rough shapes, the colours, and the details last.
 *
 * Made to be short: colours are not subsampled, and the Huffman codes are the same for every picture.
 */

/** The places in a block of 8 x 8 by rising frequency: along one diagonal after the other, to and fro (figure A.6). */
const zigzag = Array.from({ length: 64 }, (_, place) => place).sort(
  (a, b) => diagonal(a) - diagonal(b) || (diagonal(a) % 2 ? a - b : b - a),
);

function diagonal(place) {
  return (place >> 3) + (place % 8);
}

/** What coefficients are divided by, in zigzag order: the finer the detail, the coarser. */
const quanta = zigzag.map((place) => 4 + 2 * diagonal(place));

/** The scans: of which components, from which coefficient to which. Only the means may be of several components (G.1.1.1.1). */
const scans = [
  [[0, 1, 2], 0, 0],
  [[0], 1, 5],
  [[1], 1, 63],
  [[2], 1, 63],
  [[0], 6, 63],
];

/**
 * The pieces of a JPEG. The first is what stands before the first scan. Each other piece is a scan, and the marker behind it, by
 * which whoever reads them knows that it is complete.
 * @param {Uint8Array} pixels R G B, row by row
 * @returns {Generator<Buffer>}
 */
export function* progressiveJPEG(pixels, width, height) {
  const blocks = coefficients(pixels, width, height);
  const components = [0, 1, 2].flatMap((index) => [index + 1, 0x11, 0]);
  const sizes = [height >> 8, height & 255, width >> 8, width & 255];
  const headers = scans.map(([indices, first, last]) =>
    segment(0xda, indices.length, ...indices.flatMap((index) => [index + 1, 0]), first, last, 0),
  );
  yield Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xe0, ...Buffer.from("JFIF\0"), 1, 1, 0, 0, 1, 0, 1, 0, 0),
    segment(0xdb, 0, ...quanta),
    segment(0xc2, 8, ...sizes, 3, ...components),
    // Of the means, how many bits a difference has: 12 codes of 4 bits. Of the rest, codes for all there can be (see `put`).
    segment(0xc4, 0x00, 0, 0, 0, 12, ...Array(12).fill(0), ...Array(12).keys()),
    segment(0xc4, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 255, ...Array(7).fill(0), ...Array(256).keys()),
    headers[0],
  ]);
  for (const [index, [indices, first, last]] of scans.entries()) {
    const components = indices.map((index) => blocks[index]);
    const data = first === 0 ? means(components) : band(components[0], first, last);
    yield Buffer.concat([data, headers[index + 1] ?? Buffer.from([0xff, 0xd9])]);
  }
}

function segment(marker, ...content) {
  const length = content.length + 2;
  return Buffer.from([0xff, marker, length >> 8, length & 255, ...content]);
}

/** For luma and the two colours, the quantised coefficients of all blocks, 64 in zigzag order for each. */
function coefficients(pixels, width, height) {
  const [across, down] = [Math.ceil(width / 8), Math.ceil(height / 8)];
  const components = [0, 1, 2].map(() => new Int16Array(64 * across * down));
  const samples = [0, 1, 2].map(() => new Float32Array(64));
  const [lumas, blues, reds] = samples;
  for (let block = 0; block < across * down; block++) {
    const [left, top] = [8 * (block % across), 8 * Math.floor(block / across)];
    for (let place = 0; place < 64; place++) {
      // The last column and row go on where the picture ends.
      const [x, y] = [Math.min(left + (place & 7), width - 1), Math.min(top + (place >> 3), height - 1)];
      const at = 3 * (y * width + x);
      const [red, green, blue] = [pixels[at], pixels[at + 1], pixels[at + 2]];
      const luma = 0.299 * red + 0.587 * green + 0.114 * blue;
      lumas[place] = luma - 128;
      blues[place] = (blue - luma) / 1.772;
      reds[place] = (red - luma) / 1.402;
    }
    for (let index = 0; index < 3; index++) {
      transform(samples[index]);
      for (let k = 0; k < 64; k++) components[index][64 * block + k] = Math.round(samples[index][zigzag[k]] / quanta[k]);
    }
  }
  return components;
}

const [, c1, c2, c3, c4, c5, c6, c7] = Array.from({ length: 8 }, (_, k) => Math.cos((k * Math.PI) / 16) / 2);

/** The discrete cosine transform of a block in its place (A.3.3): of its rows, then of its columns. */
function transform(block) {
  for (let row = 0; row < 64; row += 8) transformLine(block, row, 1);
  for (let column = 0; column < 8; column++) transformLine(block, column, 8);
}

/** A cosine is the same on both sides of the middle, or its negative: sums and differences of what mirrors each other will do. */
function transformLine(block, at, step) {
  const end = at + 7 * step;
  const [s0, d0] = [block[at] + block[end], block[at] - block[end]];
  const [s1, d1] = [block[at + step] + block[end - step], block[at + step] - block[end - step]];
  const [s2, d2] = [block[at + 2 * step] + block[end - 2 * step], block[at + 2 * step] - block[end - 2 * step]];
  const [s3, d3] = [block[at + 3 * step] + block[end - 3 * step], block[at + 3 * step] - block[end - 3 * step]];
  block[at] = c4 * (s0 + s1 + s2 + s3);
  block[at + step] = c1 * d0 + c3 * d1 + c5 * d2 + c7 * d3;
  block[at + 2 * step] = c2 * (s0 - s3) + c6 * (s1 - s2);
  block[at + 3 * step] = c3 * d0 - c7 * d1 - c1 * d2 - c5 * d3;
  block[at + 4 * step] = c4 * (s0 - s1 - s2 + s3);
  block[at + 5 * step] = c5 * d0 - c1 * d1 + c7 * d2 + c3 * d3;
  block[at + 6 * step] = c6 * (s0 - s3) - c2 * (s1 - s2);
  block[at + 7 * step] = c7 * d0 - c5 * d1 + c3 * d2 - c1 * d3;
}

/** The first coefficients of all blocks of several components in turn, each as the difference from the one before (F.1.2.1). */
function means(components) {
  const bits = new Bits();
  for (let at = 0; at < components[0].length; at += 64) {
    for (const coefficients of components) {
      const difference = coefficients[at] - (at > 0 ? coefficients[at - 64] : 0);
      const size = sizeOf(difference);
      bits.put(size, 4);
      bits.putNumber(difference, size);
    }
  }
  return bits.end();
}

/**
 * The coefficients from `first` to `last` of all blocks of one component (F.1.2.2, G.1.2.2): for each that is not 0, how many
 * zeros stand before it and how many bits it has in one code, then these bits. The code for the end of a block, which is the most
 * frequent by far, has 1 bit, all others have 9.
 */
function band(coefficients, first, last) {
  const bits = new Bits();
  for (let at = 0; at < coefficients.length; at += 64) {
    let zeros = 0;
    for (let k = first; k <= last; k++) {
      const value = coefficients[at + k];
      if (value === 0) {
        zeros += 1;
        continue;
      }
      for (; zeros > 15; zeros -= 16) bits.put(255 + 0xf0, 9);
      const size = sizeOf(value);
      bits.put(255 + ((zeros << 4) | size), 9);
      bits.putNumber(value, size);
      zeros = 0;
    }
    if (zeros > 0) bits.put(0, 1);
  }
  return bits.end();
}

function sizeOf(value) {
  return 32 - Math.clz32(Math.abs(value));
}

/** Bits, the highest first; behind a byte of ones stands a zero, so that it is no marker (F.1.2.3). */
class Bits {
  #bytes = [];
  #held = 0;
  #count = 0;

  put(value, count) {
    this.#held = (this.#held << count) | value;
    this.#count += count;
    while (this.#count >= 8) {
      this.#count -= 8;
      const byte = (this.#held >> this.#count) & 255;
      this.#bytes.push(byte);
      if (byte === 255) this.#bytes.push(0);
    }
  }

  /** A negative number is one less, in as many bits. */
  putNumber(value, size) {
    this.put((value < 0 ? value - 1 : value) & ((1 << size) - 1), size);
  }

  /** Filled up with ones. */
  end() {
    this.put(127, 7);
    return Buffer.from(this.#bytes);
  }
}

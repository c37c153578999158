#pragma once

// The filters of PNG (third edition, section 9.2). A row is filtered with the bytes of the pixel to the left and of the
// row above, which are 0 outside of the image.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "resampling.h"

typedef short cvectors_pixel __attribute__((vector_size(16)));
typedef unsigned char cvectors_pixel_bytes __attribute__((vector_size(8)));

/// Loads a pixel of up to 8 bytes.
CVECTORS_BODY cvectors_pixel cvectors_load_pixel(const uint8_t *place, size_t size) {
  cvectors_pixel_bytes bytes = {0};
  memcpy(&bytes, place, size);
  return __builtin_convertvector(bytes, cvectors_pixel);
}

CVECTORS_BODY void cvectors_store_pixel(uint8_t *place, cvectors_pixel pixel, size_t size) {
  cvectors_pixel_bytes bytes = __builtin_convertvector(pixel, cvectors_pixel_bytes);
  memcpy(place, &bytes, size);
}

CVECTORS_BODY cvectors_pixel cvectors_paeth(cvectors_pixel left, cvectors_pixel above, cvectors_pixel corner) {
  cvectors_pixel across = above - corner, down = left - corner;
  cvectors_pixel by_left = __builtin_elementwise_abs(across), by_above = __builtin_elementwise_abs(down);
  cvectors_pixel by_corner = __builtin_elementwise_abs(across + down);
  cvectors_pixel is_left = by_left <= by_above;
  cvectors_pixel is_nearer = __builtin_elementwise_min(by_left, by_above) <= by_corner;
  cvectors_pixel nearer = (left & is_left) | (above & ~is_left);
  return (nearer & is_nearer) | (corner & ~is_nearer);
}

/// Undoes a filter for pixels of `size` bytes, at most 8.
CVECTORS_BODY void cvectors_unfilter_pixels(
    int filter, uint8_t *row, const uint8_t *above, size_t length, const size_t size) {
  cvectors_pixel left = {0}, corner = {0};
  switch (filter) {
  case 1:
    for (size_t at = 0; at < length; at += size) {
      left = (left + cvectors_load_pixel(row + at, size)) & 255;
      cvectors_store_pixel(row + at, left, size);
    }
    break;
  case 2:
    for (size_t at = 0; at < length; at++) row[at] += above[at];
    break;
  case 3:
    for (size_t at = 0; at < length; at += size) {
      cvectors_pixel mean = (left + cvectors_load_pixel(above + at, size)) >> 1;
      left = (mean + cvectors_load_pixel(row + at, size)) & 255;
      cvectors_store_pixel(row + at, left, size);
    }
    break;
  case 4:
    for (size_t at = 0; at < length; at += size) {
      cvectors_pixel up = cvectors_load_pixel(above + at, size);
      left = (cvectors_paeth(left, up, corner) + cvectors_load_pixel(row + at, size)) & 255;
      cvectors_store_pixel(row + at, left, size);
      corner = up;
    }
    break;
  }
}

/// Undoes a filter (0 to 4) of a row whose pixels have `size` bytes: 1, 2, 3, 4, 6 or 8. `length` must be a multiple.
static inline void cvectors_unfilter(int filter, uint8_t *row, const uint8_t *above, size_t length, size_t size) {
  switch (size) {
  case 1: return cvectors_unfilter_pixels(filter, row, above, length, 1);
  case 2: return cvectors_unfilter_pixels(filter, row, above, length, 2);
  case 3: return cvectors_unfilter_pixels(filter, row, above, length, 3);
  case 4: return cvectors_unfilter_pixels(filter, row, above, length, 4);
  case 6: return cvectors_unfilter_pixels(filter, row, above, length, 6);
  case 8: return cvectors_unfilter_pixels(filter, row, above, length, 8);
  }
}

/// Filters a byte.
CVECTORS_BODY uint8_t cvectors_filtered(int filter, short byte, short left, short above, short corner) {
  short across = above - corner, down = left - corner;
  short by_left = abs(across), by_above = abs(down), by_corner = abs(across + down);
  short nearer = by_left <= by_above ? left : above, distance = by_left <= by_above ? by_left : by_above;
  switch (filter) {
  case 1: return byte - left;
  case 2: return byte - above;
  case 3: return byte - ((left + above) >> 1);
  case 4: return byte - (distance <= by_corner ? nearer : corner);
  default: return byte;
  }
}

/// Filters a row into `result`, and returns the sum of the absolute values of its bytes as signed numbers. `row` and
/// `above` have `size` zeros before them.
CVECTORS_BODY uint64_t cvectors_filter_bytes(
    const int filter, const uint8_t *row, const uint8_t *above, size_t length, size_t size, uint8_t *result) {
  uint64_t sum = 0;
  for (size_t start = 0; start < length; start += 1 << 15) {
    size_t end = start + (1 << 15) < length ? start + (1 << 15) : length;
    uint32_t part = 0;
    for (size_t at = start; at < end; at++) {
      result[at] = cvectors_filtered(filter, row[at], row[at - size], above[at], above[at - size]);
      part += result[at] < 128 ? result[at] : 256 - result[at];
    }
    sum += part;
  }
  return sum;
}

/// Writes the filtered row whose sum of absolute values is the smallest, after the number of its filter (section 12.7).
CVECTORS_BODY void cvectors_filter_best(
    const uint8_t *row, const uint8_t *above, size_t length, size_t size, uint8_t *trial, uint8_t *result) {
  uint64_t best = UINT64_MAX;
  CVECTORS_UNROLLED (int filter = 0; filter < 5; filter++) {
    uint64_t sum = cvectors_filter_bytes(filter, row, above, length, size, trial);
    if (sum < best) {
      best = sum;
      result[0] = filter;
      memcpy(result + 1, trial, length);
    }
  }
}

CVECTORS_WIDE void cvectors_filter_wide(
    const uint8_t *row, const uint8_t *above, size_t length, size_t size, uint8_t *trial, uint8_t *result) {
  cvectors_filter_best(row, above, length, size, trial, result);
}

/// Filters a row by the filter that is likely to compress best, and writes it after the number of the filter.
///
/// - Parameters:
///   - row: has `size` zeros before it, as `above` has.
///   - size: the bytes of a pixel.
///   - trial: space for a row.
///   - result: `length` + 1 bytes.
static inline void cvectors_filter(
    const uint8_t *row, const uint8_t *above, size_t length, size_t size, uint8_t *trial, uint8_t *result) {
  if (cvectors_is_wide()) {
    cvectors_filter_wide(row, above, length, size, trial, result);
  } else {
    cvectors_filter_best(row, above, length, size, trial, result);
  }
}

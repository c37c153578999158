#pragma once

// Sums of weighted samples, which take most of the time of resampling. Swift compiles for the oldest processor that the
// program supports. A C function can be compiled for several, one of which is chosen at run time. All versions do the
// same operations in the same order, so that the result is the same on each machine.

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CVECTORS_LANES 8

typedef float cvectors_lanes __attribute__((vector_size(CVECTORS_LANES * sizeof(float))));
typedef float cvectors_numbers __attribute__((vector_size(2 * sizeof(cvectors_lanes))));

/// Forbids fused multiply-add, which rounds once less and is not available on every processor.
#define CVECTORS_ROUNDED _Pragma("clang fp contract(off)")
#define CVECTORS_UNROLLED _Pragma("clang loop unroll(full)") for
#define CVECTORS_BODY static inline __attribute__((always_inline))

CVECTORS_BODY cvectors_lanes cvectors_load(const float *place) {
  cvectors_lanes lanes;
  memcpy(&lanes, place, sizeof lanes);
  return lanes;
}

CVECTORS_BODY void cvectors_store(float *place, cvectors_lanes lanes) { memcpy(place, &lanes, sizeof lanes); }

CVECTORS_BODY void cvectors_weighted_sums(
    float *sums, const float *rows, size_t length, const float *weights, size_t count) {
  CVECTORS_ROUNDED
  for (size_t at = 0; at < length; at += 4 * CVECTORS_LANES) {
    cvectors_numbers sum[2], samples[2];
    memcpy(sum, sums + at, sizeof sum);
    for (size_t row = 0; row < count; row++) {
      memcpy(samples, rows + row * length + at, sizeof samples);
      CVECTORS_UNROLLED (int half = 0; half < 2; half++) sum[half] += samples[half] * weights[row];
    }
    memcpy(sums + at, sum, sizeof sum);
  }
}

/// Transposes `length` samples of 8 rows into `length` groups of 8, one sample of each row.
CVECTORS_BODY void cvectors_transpose(const float *const *rows, size_t length, float *columns) {
#define CVECTORS_PAIRS(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
  for (size_t at = 0; at < length; at += CVECTORS_LANES) {
    cvectors_lanes from[8], pairs[8], fours[8];
    CVECTORS_UNROLLED (int row = 0; row < 8; row++) from[row] = cvectors_load(rows[row] + at);
    CVECTORS_UNROLLED (int row = 0; row < 8; row += 2) {
      pairs[row] = CVECTORS_PAIRS(from[row], from[row + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      pairs[row + 1] = CVECTORS_PAIRS(from[row], from[row + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    CVECTORS_UNROLLED (int row = 0; row < 8; row += 4) {
      CVECTORS_UNROLLED (int half = 0; half < 2; half++) {
        cvectors_lanes upper = pairs[row + half], lower = pairs[row + half + 2];
        fours[row + 2 * half] = CVECTORS_PAIRS(upper, lower, 0, 1, 8, 9, 4, 5, 12, 13);
        fours[row + 2 * half + 1] = CVECTORS_PAIRS(upper, lower, 2, 3, 10, 11, 6, 7, 14, 15);
      }
    }
    CVECTORS_UNROLLED (int column = 0; column < 4; column++) {
      cvectors_lanes upper = fours[column], lower = fours[column + 4];
      float *place = columns + (at + column) * CVECTORS_LANES;
      cvectors_store(place, CVECTORS_PAIRS(upper, lower, 0, 1, 2, 3, 8, 9, 10, 11));
      cvectors_store(place + 4 * CVECTORS_LANES, CVECTORS_PAIRS(upper, lower, 4, 5, 6, 7, 12, 13, 14, 15));
    }
  }
#undef CVECTORS_PAIRS
}

CVECTORS_BODY void cvectors_narrow_columns(
    const float *columns, const int *firsts, const float *weights, size_t taps, size_t count, float *result) {
  CVECTORS_ROUNDED
  for (size_t sample = 0; sample < count; sample++) {
    const float *place = columns + (size_t)firsts[sample] * CVECTORS_LANES;
    // Two sums, because consecutive additions to a single one would have to wait for each other.
    cvectors_lanes even = {0}, odd = {0};
    for (size_t tap = 0; tap < taps; tap += 2) {
      even += cvectors_load(place + tap * CVECTORS_LANES) * weights[sample * taps + tap];
      odd += cvectors_load(place + (tap + 1) * CVECTORS_LANES) * weights[sample * taps + tap + 1];
    }
    cvectors_store(result + sample * CVECTORS_LANES, even + odd);
  }
}

typedef uint8_t cvectors_bytes __attribute__((vector_size(16)));

/// Loads 16 bytes, each `stride` (1 to 4) after the one before.
CVECTORS_BODY cvectors_numbers cvectors_every(const uint8_t *place, const size_t stride) {
  cvectors_bytes from[4] = {0}, picked;
  memcpy(from, place, 16 * stride);
  if (stride == 1) {
    picked = from[0];
  } else if (stride == 2) {
    picked =
        __builtin_shufflevector(from[0], from[1], 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  } else if (stride == 3) {
    picked = __builtin_shufflevector(from[0], from[1], 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, -1, -1, -1, -1, -1);
    picked = __builtin_shufflevector(picked, from[2], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);
  } else {
    cvectors_bytes first, second;
    first = __builtin_shufflevector(from[0], from[1], 0, 4, 8, 12, 16, 20, 24, 28, -1, -1, -1, -1, -1, -1, -1, -1);
    second = __builtin_shufflevector(from[2], from[3], 0, 4, 8, 12, 16, 20, 24, 28, -1, -1, -1, -1, -1, -1, -1, -1);
    picked = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  }
  return __builtin_convertvector(picked, cvectors_numbers);
}

CVECTORS_BODY void cvectors_samples_of(
    const uint8_t *row, const uint8_t *alpha, const size_t stride, size_t count, float *samples) {
  size_t at = 0;
  // The last of these bytes may be behind the last sample, and must not be behind the row.
  for (; at + 17 <= count; at += 16) {
    cvectors_numbers numbers = cvectors_every(row + at * stride, stride);
    if (alpha) numbers *= cvectors_every(alpha + at * stride, stride) / 255;
    memcpy(samples + at, &numbers, sizeof numbers);
  }
  for (; at < count; at++) samples[at] = (float)row[at * stride] * (alpha ? (float)alpha[at * stride] / 255 : 1);
}

CVECTORS_BODY void cvectors_samples_body(
    const uint8_t *row, const uint8_t *alpha, size_t stride, size_t count, float *samples) {
  switch (stride) {
  case 1: return cvectors_samples_of(row, alpha, 1, count, samples);
  case 2: return cvectors_samples_of(row, alpha, 2, count, samples);
  case 3: return cvectors_samples_of(row, alpha, 3, count, samples);
  case 4: return cvectors_samples_of(row, alpha, 4, count, samples);
  }
}

#ifdef __x86_64__
#define CVECTORS_WIDE static __attribute__((target("avx2")))
#define CVECTORS_WIDEST static __attribute__((target("avx512f")))
static inline int cvectors_is_wide(void) { return __builtin_cpu_supports("avx2") != 0; }
static inline int cvectors_is_widest(void) { return __builtin_cpu_supports("avx512f") != 0; }
#else
#define CVECTORS_WIDE static
#define CVECTORS_WIDEST static
static inline int cvectors_is_wide(void) { return 0; }
static inline int cvectors_is_widest(void) { return 0; }
#endif

CVECTORS_WIDE void cvectors_add_rows_wide(
    float *sums, const float *rows, size_t length, const float *weights, size_t count) {
  cvectors_weighted_sums(sums, rows, length, weights, count);
}

CVECTORS_WIDEST void cvectors_add_rows_widest(
    float *sums, const float *rows, size_t length, const float *weights, size_t count) {
  cvectors_weighted_sums(sums, rows, length, weights, count);
}

CVECTORS_WIDE void cvectors_narrow_wide(
    const float *const *rows, size_t length, float *columns, const int *firsts, const float *weights, size_t taps,
    size_t count, float *result) {
  cvectors_transpose(rows, length, columns);
  cvectors_narrow_columns(columns, firsts, weights, taps, count, result);
}

CVECTORS_WIDE void cvectors_samples_wide(
    const uint8_t *row, const uint8_t *alpha, size_t stride, size_t count, float *samples) {
  cvectors_samples_body(row, alpha, stride, count, samples);
}

/// Takes every `stride`th byte of a row, 1 to 4, as a number, multiplied with its alpha / 255 unless `alpha` is NULL.
static inline void cvectors_samples(
    const uint8_t *row, const uint8_t *alpha, size_t stride, size_t count, float *samples) {
  if (cvectors_is_wide()) {
    cvectors_samples_wide(row, alpha, stride, count, samples);
  } else {
    cvectors_samples_body(row, alpha, stride, count, samples);
  }
}

/// Adds `count` rows of `length` samples to sums: each row times its weight. `length` must be a multiple of 32. It takes
/// half the time if the rows are aligned to 64 bytes.
static inline void cvectors_add_rows(
    float *sums, const float *rows, size_t length, const float *weights, size_t count) {
  if (cvectors_is_widest()) {
    cvectors_add_rows_widest(sums, rows, length, weights, count);
  } else if (cvectors_is_wide()) {
    cvectors_add_rows_wide(sums, rows, length, weights, count);
  } else {
    cvectors_weighted_sums(sums, rows, length, weights, count);
  }
}

/// Filters 8 rows of `length` samples, a multiple of 8, into `count` samples in groups of 8, one of each row. Each is
/// the weighted sum of `taps` samples, an even number, starting at its entry in `firsts`. The weights are in the order
/// of the result samples.
///
/// - Parameter columns: space for all samples of the rows.
static inline void cvectors_narrow(
    const float *const *rows, size_t length, float *columns, const int *firsts, const float *weights, size_t taps,
    size_t count, float *result) {
  if (cvectors_is_wide()) {
    cvectors_narrow_wide(rows, length, columns, firsts, weights, taps, count, result);
  } else {
    cvectors_transpose(rows, length, columns);
    cvectors_narrow_columns(columns, firsts, weights, taps, count, result);
  }
}

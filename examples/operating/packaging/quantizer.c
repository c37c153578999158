// Reduces the colours of pictures. It has the functions of libimagequant that libvips calls, see
// https://pngquant.org/lib/. The tarball contains it as libimagequant.so.0, since libimagequant is under the GPL:
//
//     cc -O2 -shared -fPIC -Wl,-soname,libimagequant.so.0 -o libimagequant.so.0 quantizer.c
//
// Colours are divided where that reduces the squared error most, as in X. Wu, "Efficient Statistical Computations for
// Optimal Color Quantization", Graphics Gems II, 1991. Pixels are mapped with the error diffusion of Floyd and
// Steinberg. A picture that has no more colours than are allowed keeps them all.
//
// Differences from libimagequant: speed and quality are checked, but have no effect; gamma has none; the transparent
// colour comes first in a palette. There is no global state.

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
  LIQ_OK = 0,
  LIQ_VALUE_OUT_OF_RANGE = 100,
  LIQ_OUT_OF_MEMORY = 101,
  LIQ_BUFFER_TOO_SMALL = 104,
  LIQ_INVALID_POINTER = 105,
  LIQ_UNSUPPORTED = 106,
} liq_error;

typedef struct {
  unsigned char r, g, b, a;
} liq_color;

typedef struct {
  unsigned int count;
  liq_color entries[256];
} liq_palette;

typedef struct {
  int max_colors;
} liq_attr;

/// The pixels belong to the caller.
typedef struct {
  const liq_color *pixels;
  int width, height, fixed_count;
  liq_color fixed[256];
} liq_image;

/// A colour: red, green and blue, multiplied by alpha (0...255), and twice the alpha (0...510). Every opaque colour is
/// nearer to another opaque colour than to the transparent one.
typedef float point __attribute__((vector_size(16)));

enum { brightnesses = 410 };

/// The colours are sorted by brightness, but the transparent one comes first.
typedef struct {
  liq_palette palette;
  point points[256];
  float brightness[256], dithering;
  int starts[brightnesses];  // by brightness: the first colour that is not darker
} liq_result;

// MARK: Colours

static point point_of(liq_color color) {
  float alpha = color.a / 255.0f;
  return (point){color.r * alpha, color.g * alpha, color.b * alpha, color.a * 2.0f};
}

static float limited(float value, float maximum) { return value < 0 ? 0 : value > maximum ? maximum : value; }

static liq_color color_of(point at) {
  if (at[3] == 0) return (liq_color){0, 0, 0, 0};
  point color = at * (510 / at[3]) + 0.5f;
  return (liq_color){limited(color[0], 255), limited(color[1], 255), limited(color[2], 255), (at[3] + 1) / 2};
}

static float distance(point a, point b) {
  point square = (a - b) * (a - b);
  return square[0] + square[1] + square[2] + square[3];
}

/// The place on an axis. Two places are no farther apart than the points. The transparent colour has the lowest place.
static float brightness_of(point at) { return at[3] == 0 ? -1 : (2 * at[0] + 3 * at[1] + at[2]) * 0.26726f; }

static int by_brightness(const void *left, const void *right) {
  float a = brightness_of(*(const point *)left), b = brightness_of(*(const point *)right);
  return (a > b) - (a < b);
}

static void finish_palette(liq_result *result, int count) {
  for (int i = 0; i < count; i++) result->points[i] = point_of(color_of(result->points[i]));
  qsort(result->points, count, sizeof *result->points, by_brightness);
  for (int i = 0; i < count; i++) {
    result->palette.entries[i] = color_of(result->points[i]);
    result->brightness[i] = brightness_of(result->points[i]);
  }
  for (int start = 0, brightness = 0; brightness < brightnesses; brightness++) {
    while (start < count && result->brightness[start] < brightness) start++;
    result->starts[brightness] = start;
  }
  result->palette.count = count;
}

/// Returns the number of the colour that is nearest to a point. A good guess saves time.
static int nearest(const liq_result *result, point at, int guess) {
  float brightness = brightness_of(at), least = distance(result->points[guess], at);
  int start = result->starts[brightness < 0 ? 0 : (int)brightness];
  for (int step = 1; step >= -1; step -= 2) {
    for (int i = step > 0 ? start : start - 1; i >= 0 && i < (int)result->palette.count; i += step) {
      float further = (result->brightness[i] - brightness) * step;
      if (further > 0 && further * further >= least) break;
      float other = distance(result->points[i], at);
      if (other < least) least = other, guess = i;
    }
  }
  return guess;
}

// MARK: Counting the colours of a picture

enum { max_samples = 1 << 16, slot_count = 1 << 17, max_probes = 256 };

/// The pixels of one colour, or of similar colours.
typedef struct {
  point mean;
  float weight;
  uint32_t key;
} sample;

/// A hash table. A key is a colour without its lowest bits.
typedef struct {
  int count, has_transparent;
  sample samples[max_samples];
  struct {
    uint32_t key, number;  // of the sample, from 1
  } slots[slot_count];
} histogram;

/// Returns the sample of a key, or NULL if there is no place for it. There is always place for 256 keys. The limit of
/// probes bounds the time for hostile pictures.
static sample *find(histogram *histogram, uint32_t key) {
  uint32_t hash = (key ^ key >> 15) * 0x9E3779B1;
  hash = (hash ^ hash >> 13) * 0x85EBCA6B >> 15;
  for (int probe = 0; probe < max_probes; probe++) {
    int i = (hash + probe) % slot_count;
    int number = histogram->slots[i].number;
    if (number == 0) {
      if (histogram->count == max_samples) return NULL;
      histogram->samples[histogram->count++] = (sample){.key = key};
      histogram->slots[i].key = key;
      number = histogram->slots[i].number = histogram->count;
    }
    if (histogram->slots[i].key == key) return &histogram->samples[number - 1];
  }
  return NULL;
}

/// Counts the colours by the highest bits of their channels. Returns 0 if there is no place for all.
static int count_colors(histogram *histogram, const liq_image *image, int bits) {
  uint32_t mask = 0xFF & 0xFF << (8 - bits);
  sample *last = NULL;
  histogram->count = 0;
  memset(histogram->slots, 0, sizeof histogram->slots);
  for (size_t i = 0; i < (size_t)image->width * image->height; i++) {
    liq_color color = image->pixels[i];
    if (color.a == 0) {
      histogram->has_transparent = 1;
      continue;
    }
    uint32_t key = (color.r & mask) << 24 | (color.g & mask) << 16 | (color.b & mask) << 8 | (color.a & mask);
    if (!last || last->key != key) last = find(histogram, key);
    if (!last) return 0;
    last->weight++;
    last->mean += (point_of(color) - last->mean) / last->weight;
  }
  return 1;
}

// MARK: Choosing a palette

/// Samples that get one colour, and their best cut. It divides those up to a level of a channel from the others.
typedef struct {
  sample *samples;
  int count, channel, level;
  double gain;  // the squared error that the cut removes
} box;

static int level_of(const sample *sample, int channel) { return (int)sample->mean[channel] >> (channel == 3); }

/// Adds to the sums of the channels and of the weight.
static void add(const sample *sample, double sums[5]) {
  for (int c = 0; c < 4; c++) sums[c] += (double)sample->mean[c] * sample->weight;
  sums[4] += sample->weight;
}

static double square(const double sums[5]) {
  return (sums[0] * sums[0] + sums[1] * sums[1] + sums[2] * sums[2] + sums[3] * sums[3]) / sums[4];
}

static box box_of(sample *samples, int count) {
  box box = {.samples = samples, .count = count};
  double levels[4][256][5] = {0}, all[5] = {0};
  for (int i = 0; i < count; i++) {
    add(&samples[i], all);
    for (int channel = 0; channel < 4; channel++) add(&samples[i], levels[channel][level_of(&samples[i], channel)]);
  }
  for (int channel = 0; channel < 4; channel++) {
    double low[5] = {0}, high[5];
    for (int level = 0; level < 255; level++) {
      for (int c = 0; c < 5; c++) high[c] = all[c] - (low[c] += levels[channel][level][c]);
      if (low[4] == 0 || high[4] == 0) continue;
      double gain = square(low) + square(high) - square(all);
      if (gain > box.gain) box.gain = gain, box.channel = channel, box.level = level;
    }
  }
  return box;
}

/// Makes the cut, and returns the box of the samples above it.
static box cut(box *whole) {
  sample *low = whole->samples, *high = low + whole->count, *end = high;
  while (low < high) {
    if (level_of(low, whole->channel) <= whole->level) {
      low++;
    } else {
      sample moved = *low;
      *low = *--high, *high = moved;
    }
  }
  *whole = box_of(whole->samples, high - whole->samples);
  return box_of(high, end - high);
}

/// Divides the samples into groups, and writes the mean of each. Returns their number.
static int write_means(histogram *histogram, point means[], int max_means) {
  box boxes[256] = {box_of(histogram->samples, histogram->count)};
  int count = 1;
  while (count < max_means) {
    int best = 0;
    for (int i = 1; i < count; i++) best = boxes[i].gain > boxes[best].gain ? i : best;
    if (boxes[best].gain == 0) break;
    boxes[count++] = cut(&boxes[best]);
  }
  for (int i = 0; i < count; i++) {
    double sums[5] = {0};
    for (int each = 0; each < boxes[i].count; each++) add(&boxes[i].samples[each], sums);
    for (int c = 0; c < 4; c++) means[i][c] = sums[c] / sums[4];
  }
  return count;
}

/// Chooses the transparent colour if it is used, the fixed colours, and as many other colours as there is room for.
static void choose_palette(liq_result *result, const liq_image *image, histogram *histogram, int max_colors) {
  int bits = 8, count = 0, has_transparent = 0;
  while (!count_colors(histogram, image, bits)) bits--;
  for (int i = 0; i < image->fixed_count; i++) has_transparent |= image->fixed[i].a == 0;
  if (has_transparent || (histogram->has_transparent && image->fixed_count < max_colors)) count = 1;
  for (int i = 0; i < image->fixed_count && count < max_colors; i++) {
    if (image->fixed[i].a > 0) result->points[count++] = point_of(image->fixed[i]);
  }
  if (bits == 8 && histogram->count <= max_colors - count) {
    for (int i = 0; i < histogram->count; i++) result->points[count++] = histogram->samples[i].mean;
  } else if (count < max_colors) {
    count += write_means(histogram, &result->points[count], max_colors - count);
  }
  finish_palette(result, count);
}

// MARK: Functions of libimagequant

liq_attr *liq_attr_create(void) {
  liq_attr *attr = malloc(sizeof *attr);
  if (attr) attr->max_colors = 256;
  return attr;
}

void liq_attr_destroy(liq_attr *attr) { free(attr); }

liq_error liq_set_max_colors(liq_attr *attr, int colors) {
  if (!attr) return LIQ_INVALID_POINTER;
  if (colors < 2 || colors > 256) return LIQ_VALUE_OUT_OF_RANGE;
  attr->max_colors = colors;
  return LIQ_OK;
}

liq_error liq_set_speed(liq_attr *attr, int speed) {
  if (!attr) return LIQ_INVALID_POINTER;
  return 1 <= speed && speed <= 10 ? LIQ_OK : LIQ_VALUE_OUT_OF_RANGE;
}

liq_error liq_set_quality(liq_attr *attr, int minimum, int maximum) {
  if (!attr) return LIQ_INVALID_POINTER;
  return 0 <= minimum && minimum <= maximum && maximum <= 100 ? LIQ_OK : LIQ_VALUE_OUT_OF_RANGE;
}

liq_image *liq_image_create_rgba(const liq_attr *attr, const void *pixels, int width, int height, double gamma) {
  if (!attr || !pixels || width <= 0 || height <= 0 || width > INT_MAX / 4 / height) return NULL;
  if (!(gamma >= 0 && gamma <= 1)) return NULL;
  liq_image *image = malloc(sizeof *image);
  if (image) *image = (liq_image){.pixels = pixels, .width = width, .height = height};
  return image;
}

void liq_image_destroy(liq_image *image) { free(image); }

liq_error liq_image_add_fixed_color(liq_image *image, liq_color color) {
  if (!image) return LIQ_INVALID_POINTER;
  if (image->fixed_count == 256) return LIQ_UNSUPPORTED;
  image->fixed[image->fixed_count++] = color;
  return LIQ_OK;
}

liq_error liq_image_quantize(liq_image *image, liq_attr *attr, liq_result **output) {
  if (!image || !attr || !output) return LIQ_INVALID_POINTER;
  liq_result *result = calloc(1, sizeof *result);
  histogram *histogram = calloc(1, sizeof *histogram);
  if (result && histogram) {
    choose_palette(result, image, histogram, attr->max_colors);
    result->dithering = 1;
    free(histogram);
    *output = result;
    return LIQ_OK;
  }
  free(result);
  free(histogram);
  return LIQ_OUT_OF_MEMORY;
}

void liq_result_destroy(liq_result *result) { free(result); }

const liq_palette *liq_get_palette(liq_result *result) { return result ? &result->palette : NULL; }

liq_error liq_set_dithering_level(liq_result *result, float level) {
  if (!result) return LIQ_INVALID_POINTER;
  if (!(level >= 0 && level <= 1)) return LIQ_VALUE_OUT_OF_RANGE;
  result->dithering = level;
  return LIQ_OK;
}

/// Writes the number of a colour for each pixel. Every other row is mapped from right to left. A tenth of each error is
/// dropped, and an error of less than 2 levels completely. That makes less noise, and smaller files.
liq_error liq_write_remapped_image(liq_result *result, liq_image *image, void *buffer, size_t size) {
  if (!result || !image || !buffer) return LIQ_INVALID_POINTER;
  int width = image->width, guess = 0;
  if (size / width < (size_t)image->height) return LIQ_BUFFER_TOO_SMALL;
  point *errors = calloc(2 * ((size_t)width + 2), sizeof *errors);  // of this row and of the next, with margins
  if (!errors) return LIQ_OUT_OF_MEMORY;
  for (int y = 0; y < image->height; y++) {
    const liq_color *pixels = image->pixels + (size_t)y * width;
    uint8_t *numbers = (uint8_t *)buffer + (size_t)y * width;
    point *here = errors + 1 + y % 2 * (width + 2), *below = errors + 1 + (y + 1) % 2 * (width + 2);
    memset(below - 1, 0, (width + 2) * sizeof *below);
    int step = y % 2 ? -1 : 1;
    for (int x = y % 2 ? width - 1 : 0; x >= 0 && x < width; x += step) {
      if (pixels[x].a == 0 && result->palette.entries[0].a == 0) {
        numbers[x] = 0;
        continue;
      }
      point wanted = point_of(pixels[x]) + here[x];
      for (int c = 0; c < 4; c++) wanted[c] = limited(wanted[c], c < 3 ? 255 : 510);
      numbers[x] = guess = nearest(result, wanted, guess);
      if (distance(wanted, result->points[guess]) < 4) continue;
      point error = (wanted - result->points[guess]) * (result->dithering * 0.9f / 16);
      here[x + step] += error * 7;
      below[x - step] += error * 3;
      below[x] += error * 5;
      below[x + step] += error;
    }
  }
  free(errors);
  return LIQ_OK;
}

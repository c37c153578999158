#pragma once

#include <gmodule.h>
#include <vips/vips.h>

#if VIPS_MAJOR_VERSION < 8 || (VIPS_MAJOR_VERSION == 8 && VIPS_MINOR_VERSION < 13)
#error "libvips 8.13 or later is needed (vips_block_untrusted_set)"
#endif

// Swift cannot call variadic functions, as most of libvips' are, so there is one wrapper for each use.

// MARK: Reading. The loaders share these options and have some of their own.

static inline int cvips_load(const char *loader, VipsSource *source, VipsImage **out, VipsFailOn fail_on) {
  return vips_call(loader, source, out, "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", fail_on, NULL);
}

static inline int cvips_load_jpeg(VipsSource *source, VipsImage **out, VipsFailOn fail_on, int shrink) {
  return vips_jpegload_source(source, out, "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", fail_on, "shrink", shrink,
                              NULL);
}

static inline int cvips_load_webp(VipsSource *source, VipsImage **out, VipsFailOn fail_on, int count, double scale) {
  return vips_webpload_source(source, out, "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", fail_on, "n", count, "scale",
                              scale, NULL);
}

// MARK: Reading rows from a callback

/// Writes the next row. Returns 0 on success, and otherwise calls `cvips_fail` before it returns -1.
typedef int (*cvips_read_row)(void *context, unsigned char *row);

static inline int cvips_fail(const char *text) {
  vips_error("rows", "%s", text);
  return -1;
}

typedef struct {
  cvips_read_row read;
  void *context;
  int next;
} cvips_rows;

static inline int cvips_rows_generate(VipsRegion *out, void *sequence, void *client, void *other, gboolean *stop) {
  cvips_rows *rows = (cvips_rows *)client;
  for (int y = out->valid.top; y < VIPS_RECT_BOTTOM(&out->valid); y++) {
    if (y != rows->next++) return cvips_fail("out of order");
    if (rows->read(rows->context, VIPS_REGION_ADDR(out, 0, y))) return -1;
  }
  return 0;
}

/// An image whose rows are read from the top on demand. `context` is passed to `release` when it is not needed any more.
/// The profile, if there is one, is copied.
static inline int cvips_from_rows(VipsImage **out, int width, int height, int bands, VipsBandFormat format,
                                  VipsInterpretation space, const void *profile, size_t length, cvips_read_row read,
                                  void *context, void (*release)(void *context)) {
  VipsImage *source = vips_image_new();
  cvips_rows *rows = VIPS_NEW(source, cvips_rows);
  g_object_set_data_full(G_OBJECT(source), "imageworker-rows", context, release);
  vips_image_init_fields(source, width, height, bands, format, VIPS_CODING_NONE, space, 1.0, 1.0);
  if (profile) vips_image_set_blob_copy(source, VIPS_META_ICC_NAME, profile, length);
  // Operations that read rows more than once then keep them.
  vips_image_set_int(source, VIPS_META_SEQUENTIAL, 1);
  if (rows) *rows = (cvips_rows){read, context, 0};
  int result = !rows || vips_image_pipelinev(source, VIPS_DEMAND_STYLE_THINSTRIP, NULL) ||
               vips_image_generate(source, NULL, cvips_rows_generate, NULL, rows, NULL) ||
               vips_sequential(source, out, "tile_height", 16, NULL);
  g_object_unref(source);
  return result ? -1 : 0;
}

// MARK: Converting pixels in a callback

/// Converts pixels of one row. May be called on several threads at once.
typedef void (*cvips_convert_pixels)(void *context, const void *pixels, int count, unsigned char *result);

typedef struct {
  cvips_convert_pixels convert;
  void *context;
} cvips_conversion;

static inline int cvips_convert_generate(VipsRegion *out, void *sequence, void *client, void *other, gboolean *stop) {
  VipsRegion *in = (VipsRegion *)sequence;
  cvips_conversion *conversion = (cvips_conversion *)other;
  VipsRect *area = &out->valid;
  if (vips_region_prepare(in, area)) return -1;
  for (int y = area->top; y < VIPS_RECT_BOTTOM(area); y++)
    conversion->convert(conversion->context, VIPS_REGION_ADDR(in, area->left, y), area->width,
                        VIPS_REGION_ADDR(out, area->left, y));
  return 0;
}

/// The pixels converted to bytes, without a profile. `context` is passed to `release` when it is not needed any more.
static inline int cvips_convert(VipsImage *in, VipsImage **out, int bands, VipsInterpretation space,
                                cvips_convert_pixels convert, void *context, void (*release)(void *context)) {
  VipsImage *result = vips_image_new();
  cvips_conversion *conversion = VIPS_NEW(result, cvips_conversion);
  g_object_set_data_full(G_OBJECT(result), "imageworker-conversion", context, release);
  if (conversion) *conversion = (cvips_conversion){convert, context};
  // A pipeline does not keep its source.
  g_object_ref(in);
  vips_object_local(result, in);
  int failed = !conversion || vips_image_pipelinev(result, VIPS_DEMAND_STYLE_THINSTRIP, in, NULL);
  if (!failed) {
    result->Bands = bands;
    result->BandFmt = VIPS_FORMAT_UCHAR;
    result->Coding = VIPS_CODING_NONE;
    result->Type = space;
    vips_image_remove(result, VIPS_META_ICC_NAME);
    failed = vips_image_generate(result, vips_start_one, cvips_convert_generate, vips_stop_one, in, conversion);
  }
  if (failed) g_object_unref(result);
  else *out = result;
  return failed ? -1 : 0;
}

// MARK: Operations

static inline int cvips_extract_area(VipsImage *in, VipsImage **out, int x, int y, int width, int height) {
  return vips_extract_area(in, out, x, y, width, height, NULL);
}

static inline int cvips_smartcrop(VipsImage *in, VipsImage **out, int width, int height, VipsInteresting interesting) {
  return vips_smartcrop(in, out, width, height, "interesting", interesting, NULL);
}

static inline int cvips_extract_bands(VipsImage *in, VipsImage **out, int first, int count) {
  return vips_extract_band(in, out, first, "n", count, NULL);
}

static inline int cvips_join_bands(VipsImage *first, VipsImage *second, VipsImage **out) {
  return vips_bandjoin2(first, second, out, NULL);
}

static inline int cvips_resize(VipsImage *in, VipsImage **out, double horizontal, double vertical) {
  return vips_resize(in, out, horizontal, "vscale", vertical, "kernel", VIPS_KERNEL_LANCZOS3, NULL);
}

/// Enlarges an image and aligns the middles; vips_resize shifts them by half a pixel of the result.
static inline int cvips_enlarge(VipsImage *in, VipsImage **out, double horizontal, double vertical, int width,
                                int height) {
  VipsInterpolate *interpolate = vips_interpolate_new("bicubic");
  int area[4] = {0, 0, width, height};
  VipsArrayInt *whole = vips_array_int_new(area, 4);
  int result = !interpolate ? -1
                            : vips_affine(in, out, horizontal, 0.0, 0.0, vertical, "interpolate", interpolate, "oarea",
                                          whole, "idx", 0.5 - 0.5 / horizontal, "idy", 0.5 - 0.5 / vertical, "extend",
                                          VIPS_EXTEND_COPY, "premultiplied", TRUE, NULL);
  vips_area_unref(VIPS_AREA(whole));
  if (interpolate) g_object_unref(interpolate);
  return result;
}

/// An image of other bytes, which are copied, with the same meaning as in `in`.
static inline VipsImage *cvips_like(VipsImage *in, const void *bytes, size_t length, int width, int height) {
  VipsImage *out =
      vips_image_new_from_memory_copy(bytes, length, width, height, vips_image_get_bands(in), VIPS_FORMAT_UCHAR);
  const void *profile;
  size_t profile_length;
  if (!out) return NULL;
  out->Type = in->Type;
  if (vips_image_get_typeof(in, VIPS_META_ICC_NAME) &&
      !vips_image_get_blob(in, VIPS_META_ICC_NAME, &profile, &profile_length))
    vips_image_set_blob_copy(out, VIPS_META_ICC_NAME, profile, profile_length);
  return out;
}

/// 8-bit R G B or R G B A in sRGB, or in the profile if there is one. The pixels are not copied, the profile is.
static inline VipsImage *cvips_view(const void *bytes, size_t length, int width, int height, int bands,
                                    const void *profile, size_t profile_length) {
  VipsImage *out = vips_image_new_from_memory(bytes, length, width, height, bands, VIPS_FORMAT_UCHAR);
  if (!out) return NULL;
  out->Type = VIPS_INTERPRETATION_sRGB;
  if (profile) vips_image_set_blob_copy(out, VIPS_META_ICC_NAME, profile, profile_length);
  return out;
}

/// Makes `out`, which must have no other owner, an animation of frames of `height` with these delays and plays.
static inline void cvips_time(VipsImage *out, int height, const int *delays, int count, int plays) {
  vips_image_set_int(out, VIPS_META_PAGE_HEIGHT, height);
  vips_image_set_array_int(out, "delay", delays, count);
  vips_image_set_int(out, "loop", plays);
}

/// Transparent sRGB pixels, which take no memory.
static inline int cvips_transparent(VipsImage **out, int width, int height) {
  if (vips_black(out, width, height, "bands", 4, NULL)) return -1;
  (*out)->Type = VIPS_INTERPRETATION_sRGB;
  return 0;
}

/// Makes `out`, which must have no other owner, an animation of frames of `height` with the timing of `in`.
static inline void cvips_animate(VipsImage *out, VipsImage *in, int height) {
  int *delays, count, loops;
  vips_image_set_int(out, VIPS_META_PAGE_HEIGHT, height);
  if (vips_image_get_typeof(in, "delay") && !vips_image_get_array_int(in, "delay", &delays, &count))
    vips_image_set_array_int(out, "delay", delays, count);
  if (vips_image_get_typeof(in, "loop") && !vips_image_get_int(in, "loop", &loops))
    vips_image_set_int(out, "loop", loops);
}

static inline int cvips_from_labq(VipsImage *in, VipsImage **out) { return vips_LabQ2sRGB(in, out, NULL); }

static inline int cvips_colourspace(VipsImage *in, VipsImage **out, VipsInterpretation space) {
  return vips_colourspace(in, out, space, NULL);
}

/// The same values with another interpretation.
static inline int cvips_interpret(VipsImage *in, VipsImage **out, VipsInterpretation space) {
  return vips_copy(in, out, "interpretation", space, NULL);
}

static inline int cvips_invert(VipsImage *in, VipsImage **out) { return vips_invert(in, out, NULL); }

static inline int cvips_premultiply(VipsImage *in, VipsImage **out) { return vips_premultiply(in, out, NULL); }

static inline int cvips_unpremultiply(VipsImage *in, VipsImage **out) { return vips_unpremultiply(in, out, NULL); }

static inline int cvips_cast(VipsImage *in, VipsImage **out, VipsBandFormat format) {
  return vips_cast(in, out, format, NULL);
}

static inline int cvips_copy(VipsImage *in, VipsImage **out) { return vips_copy(in, out, NULL); }

static inline int cvips_multiply(VipsImage *left, VipsImage *right, VipsImage **out) {
  return vips_multiply(left, right, out, NULL);
}

static inline int cvips_linear(VipsImage *in, VipsImage **out, double factor, double offset) {
  return vips_linear1(in, out, factor, offset, NULL);
}

static inline int cvips_rotate(VipsImage *in, VipsImage **out, VipsAngle angle) {
  return vips_rot(in, out, angle, NULL);
}

static inline int cvips_flip(VipsImage *in, VipsImage **out, VipsDirection direction) {
  return vips_flip(in, out, direction, NULL);
}

static inline int cvips_blur(VipsImage *in, VipsImage **out, double sigma) {
  // The default of 0.2 truncates the Gaussian so early that it is a quarter narrower.
  return vips_gaussblur(in, out, sigma, "min_ampl", 0.01, NULL);
}

/// `background` must have one value for each of the `count` bands.
static inline int cvips_embed(VipsImage *in, VipsImage **out, int x, int y, int width, int height,
                              const double *background, int count) {
  VipsArrayDouble *values = vips_array_double_new(background, count);
  int result = vips_embed(in, out, x, y, width, height, "extend", VIPS_EXTEND_BACKGROUND, "background", values, NULL);
  vips_area_unref(VIPS_AREA(values));
  return result;
}

static inline int cvips_add_alpha(VipsImage *in, VipsImage **out) { return vips_addalpha(in, out, NULL); }

static inline int cvips_flatten(VipsImage *in, VipsImage **out, const double *background, int count) {
  VipsArrayDouble *values = vips_array_double_new(background, count);
  int result = vips_flatten(in, out, "background", values, NULL);
  vips_area_unref(VIPS_AREA(values));
  return result;
}

/// Stacks the images vertically.
static inline int cvips_stack(VipsImage **in, VipsImage **out, int count) {
  return vips_arrayjoin(in, out, count, "across", 1, NULL);
}

// MARK: Writing. No metadata; pixels are sRGB by then and need no profile.

// For rows of more than 64 MB. Filtering makes files less than half as large. A level above 4 takes three times as long
// without any gain.
static inline int cvips_save_png(VipsImage *in, void **bytes, size_t *length) {
  return vips_pngsave_buffer(in, bytes, length, "strip", TRUE, "compression", 4, "filter",
                             VIPS_FOREIGN_PNG_FILTER_ALL, NULL);
}

static inline int cvips_save_webp(VipsImage *in, void **bytes, size_t *length, int quality) {
  return vips_webpsave_buffer(in, bytes, length, "Q", quality, "strip", TRUE, "effort", 4, NULL);
}

// As many as 256 colours for each frame, or for all frames if these suffice. A pixel is either opaque or transparent.
static inline int cvips_save_gif(VipsImage *in, void **bytes, size_t *length) {
  return vips_gifsave_buffer(in, bytes, length, "strip", TRUE, "effort", 4, NULL);
}

// A higher effort takes half as long again for 2 % of the size.
static inline int cvips_save_lossless_webp(VipsImage *in, void **bytes, size_t *length) {
  return vips_webpsave_buffer(in, bytes, length, "lossless", TRUE, "strip", TRUE, "effort", 2, NULL);
}

// The effort of 7 that libvips uses takes up to twice as long for the same size. One below 5 makes files half as large
// again in a third of the time.
static inline int cvips_save_jxl(VipsImage *in, void **bytes, size_t *length, int quality) {
  return vips_jxlsave_buffer(in, bytes, length, "Q", quality, "strip", TRUE, "effort", 5, NULL);
}

// A higher effort takes twice as long for a fifth of the size, and three times the memory. A lower one makes files of
// artwork four times as large.
static inline int cvips_save_lossless_jxl(VipsImage *in, void **bytes, size_t *length) {
  return vips_jxlsave_buffer(in, bytes, length, "lossless", TRUE, "strip", TRUE, "effort", 4, NULL);
}

// MARK: Macros

static inline void *cvips_region_row(VipsRegion *region, int y) { return VIPS_REGION_ADDR(region, 0, y); }

static inline void cvips_unref(void *object) { g_object_unref(object); }

/// The longest side of an image. The macro calls a function since libvips 8.15.
static inline int cvips_max_side(void) { return VIPS_MAX_COORD; }

static inline gboolean cvips_has_operation(const char *name) { return vips_type_find("VipsOperation", name) != 0; }

/// The path from which the dynamic linker loaded libvips; NULL if unknown.
static inline const char *cvips_library_path(void) {
  struct {
    const char *file;
    void *base;
    const char *symbol;
    void *address;
  } found;
  // dladdr is hidden without _GNU_SOURCE.
  extern int cvips_dladdr(const void *address, void *result) __asm__(
#ifdef __APPLE__
      "_dladdr"
#else
      "dladdr"
#endif
  );
  return cvips_dladdr((const void *)vips_init, &found) ? found.file : NULL;
}

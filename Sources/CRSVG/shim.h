#pragma once

#include <fontconfig/fontconfig.h>
#include <iconv.h>
#include <librsvg/rsvg.h>

/// The placement of a drawing: its size is the viewport for percentages and the view box.
typedef struct {
  double width, height;
  /// The scale of the drawing, which starts at the offset.
  double scale_x, scale_y;
  double offset_x, offset_y;
} crsvg_place;

/// Hides all fonts from fontconfig except the regular and bold ones of these families, so that every other font is replaced
/// by one of them. Must run before a font is used. The font set of the configuration is changed in place, because
/// fontconfig has no function that removes a font.
static inline void crsvg_keep_families(const char *const *families, int count) {
  FcConfig *config = FcConfigGetCurrent();
  FcFontSet *fonts = FcConfigGetFonts(config, FcSetSystem);
  if (!fonts) return;
  int kept = 0;
  int weights[] = {FC_WEIGHT_REGULAR, FC_WEIGHT_BOLD};
  for (int index = 0; index < 2 * count; index++) {
    FcPattern *wanted = FcPatternBuild(NULL, FC_FAMILY, FcTypeString, families[index / 2], FC_WEIGHT, FcTypeInteger,
                                       weights[index % 2], (char *)NULL);
    FcConfigSubstitute(config, wanted, FcMatchPattern);
    FcDefaultSubstitute(wanted);
    FcResult result;
    FcPattern *match = FcFontMatch(config, wanted, &result);
    FcPatternDestroy(wanted);
    FcChar8 *file = NULL;
    if (match && FcPatternGetString(match, FC_FILE, 0, &file) == FcResultMatch) {
      for (int font = kept; font < fonts->nfont; font++) {
        FcChar8 *other = NULL;
        if (FcPatternGetString(fonts->fonts[font], FC_FILE, 0, &other) != FcResultMatch) continue;
        if (strcmp((const char *)file, (const char *)other) != 0) continue;
        FcPattern *found = fonts->fonts[font];
        fonts->fonts[font] = fonts->fonts[kept];
        fonts->fonts[kept++] = found;
      }
    }
    if (match) FcPatternDestroy(match);
  }
  for (int font = kept; font < fonts->nfont; font++) FcPatternDestroy(fonts->fonts[font]);
  fonts->nfont = kept;
}

/// Keeps the regular and bold font files of a family open for the life of the process. cairo shares an open file among
/// all sizes, and keeps ten files open.
static inline void crsvg_keep_font(const char *family) {
  cairo_font_weight_t weights[] = {CAIRO_FONT_WEIGHT_NORMAL, CAIRO_FONT_WEIGHT_BOLD};
  for (int index = 0; index < 2; index++) {
    cairo_font_face_t *face = cairo_toy_font_face_create(family, CAIRO_FONT_SLANT_NORMAL, weights[index]);
    cairo_matrix_t size, unit;
    cairo_matrix_init_scale(&size, 16, 16);
    cairo_matrix_init_identity(&unit);
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_scaled_font_t *font = cairo_scaled_font_create(face, &size, &unit, options);
    cairo_text_extents_t extents;
    cairo_scaled_font_text_extents(font, "A", &extents);
    cairo_font_options_destroy(options);
  }
}

/// Loads the conversions of character encodings that libxml2 uses for XML, for the life of the process: those of the
/// Encoding standard (encoding.spec.whatwg.org) other than the ones in libxml2 itself. glibc has a file for each.
static inline void crsvg_keep_encodings(void) {
  const char *names[] = {
      "IBM866",       "ISO-8859-2",   "ISO-8859-3",   "ISO-8859-4",   "ISO-8859-5",   "ISO-8859-6",   "ISO-8859-7",
      "ISO-8859-8",   "ISO-8859-10",  "ISO-8859-13",  "ISO-8859-14",  "ISO-8859-15",  "ISO-8859-16",  "KOI8-R",
      "KOI8-U",       "MACINTOSH",    "WINDOWS-874",  "WINDOWS-1250", "WINDOWS-1251", "WINDOWS-1252", "WINDOWS-1253",
      "WINDOWS-1254", "WINDOWS-1255", "WINDOWS-1256", "WINDOWS-1257", "WINDOWS-1258", "MAC-CYRILLIC", "GBK",
      "GB2312",       "GB18030",      "BIG5",         "BIG5-HKSCS",   "EUC-JP",       "ISO-2022-JP",  "SHIFT_JIS",
      "EUC-KR",       "ISO-8859-9",   "UHC",
  };
  for (size_t index = 0; index < sizeof names / sizeof *names; index++) iconv_open("UTF-8", names[index]);
}

// See imageworker-codec/font_thread.c.
void codec_settle_font_thread(void);
void codec_start_font_thread(void);

/// Draws an SVG over `pixels`, which are words of premultiplied alpha, red, green and blue. The SVG has no base URL, so
/// that only references within it and `data:` URLs are resolved.
///
/// Returns NULL, or an error text that must be freed with g_free.
static inline char *crsvg_draw(const void *bytes, size_t length, crsvg_place place, void *pixels, int width,
                               int height) {
  codec_start_font_thread();
  GError *error = NULL;
  char *wrong = NULL;
  GInputStream *stream = g_memory_input_stream_new_from_data(bytes, (gssize)length, NULL);
  RsvgHandle *handle = rsvg_handle_new_from_stream_sync(stream, NULL, RSVG_HANDLE_FLAGS_NONE, NULL, &error);
  g_object_unref(stream);
  if (!handle) {
    wrong = g_strdup(error ? error->message : "the drawing cannot be read");
    g_clear_error(&error);
    return wrong;
  }
  rsvg_handle_set_dpi(handle, 96);
  cairo_surface_t *surface =
      cairo_image_surface_create_for_data((unsigned char *)pixels, CAIRO_FORMAT_ARGB32, width, height, 4 * width);
  cairo_t *context = cairo_create(surface);
  cairo_translate(context, place.offset_x, place.offset_y);
  cairo_scale(context, place.scale_x, place.scale_y);
  RsvgRectangle viewport = {0, 0, place.width, place.height};
  if (!rsvg_handle_render_document(handle, context, &viewport, &error)) {
    wrong = g_strdup(error ? error->message : "the drawing cannot be drawn");
  } else if (cairo_status(context) != CAIRO_STATUS_SUCCESS) {
    wrong = g_strdup(cairo_status_to_string(cairo_status(context)));
  }
  g_clear_error(&error);
  cairo_destroy(context);
  cairo_surface_finish(surface);
  cairo_surface_destroy(surface);
  g_object_unref(handle);
  return wrong;
}

#pragma once

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

// libjpeg reports an error by a function that must not return, and Swift cannot jump out of one: every call of the library
// is made here, and says whether it came through. After one that did not, only the message may be asked for.

typedef struct {
  struct jpeg_error_mgr manager;
  jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
  /// Whether each pixel has to be in the data.
  int is_strict;
} cjpeg_errors;

static inline void cjpeg_fail(j_common_ptr jpeg) {
  cjpeg_errors *errors = (cjpeg_errors *)jpeg->err;
  jpeg->err->format_message(jpeg, errors->message);
  longjmp(errors->failed, 1);
}

/// Some warnings pass, as in libvips, but that of a file that ends too early does not; where it is strict, neither do those
/// of data that end too early or are none.
static inline void cjpeg_warn(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  jpeg->err->num_warnings++;
  switch (jpeg->err->msg_code) {
  case JWRN_HIT_MARKER:
  case JWRN_HUFF_BAD_CODE:
    if (!((cjpeg_errors *)jpeg->err)->is_strict) break;
    // Fall through.
  case JWRN_JPEG_EOF: cjpeg_fail(jpeg);
  }
  if (jpeg->err->num_warnings == 100) cjpeg_fail(jpeg);
}

static inline void cjpeg_output_message(j_common_ptr jpeg) { (void)jpeg; }

static inline void cjpeg_set_errors(struct jpeg_error_mgr **place, cjpeg_errors *errors) {
  *place = jpeg_std_error(&errors->manager);
  errors->manager.error_exit = cjpeg_fail;
  errors->manager.emit_message = cjpeg_warn;
  errors->manager.output_message = cjpeg_output_message;
}

// MARK: Reading

/// The samples of one component as they are stored.
typedef struct {
  /// How many samples there are, of which the last may be cut: these of so many pixels of the image.
  int across, across_of, down, down_of;
  JSAMPARRAY rows;
  /// How many are read at a time.
  int row_count;
} cjpeg_plane;

typedef struct {
  struct jpeg_decompress_struct jpeg;
  cjpeg_errors errors;
  cjpeg_plane planes[MAX_COMPONENTS];
} cjpeg_reader;

/// Zeroed memory becomes a reader, to be closed whatever else is called. The file must stay until then.
static inline int cjpeg_open(cjpeg_reader *reader, const void *bytes, size_t count, int is_strict) {
  cjpeg_set_errors(&reader->jpeg.err, &reader->errors);
  reader->errors.is_strict = is_strict;
  if (setjmp(reader->errors.failed)) return 0;
  jpeg_create_decompress(&reader->jpeg);
  jpeg_mem_src(&reader->jpeg, (const unsigned char *)bytes, count);
  return jpeg_read_header(&reader->jpeg, TRUE) == JPEG_HEADER_OK;
}

/// Begins with the pixels, `shrink` (1, 2, 4 or 8) times fewer on each side, rounded up.
static inline int cjpeg_start(cjpeg_reader *reader, int shrink) {
  if (setjmp(reader->errors.failed)) return 0;
  reader->jpeg.scale_num = 1;
  reader->jpeg.scale_denom = shrink;
  return jpeg_start_decompress(&reader->jpeg);
}

static inline int cjpeg_read_row(cjpeg_reader *reader, unsigned char *row) {
  if (setjmp(reader->errors.failed)) return 0;
  return jpeg_read_scanlines(&reader->jpeg, &row, 1) == 1;
}

/// Begins with the samples of each component, where there are as many of them as the image has. They are not those of the
/// result where it is made smaller: libjpeg makes components smaller by different factors if they become alike so.
static inline int cjpeg_start_planes(cjpeg_reader *reader, int shrink) {
  struct jpeg_decompress_struct *jpeg = &reader->jpeg;
  jpeg->raw_data_out = TRUE;
  if (!cjpeg_start(reader, shrink)) return 0;
  if (setjmp(reader->errors.failed)) return 0;
  for (int index = 0; index < jpeg->num_components; index++) {
    jpeg_component_info *component = &jpeg->comp_info[index];
    cjpeg_plane *plane = &reader->planes[index];
#if JPEG_LIB_VERSION >= 70
    int width = component->DCT_h_scaled_size, height = component->DCT_v_scaled_size;
#else
    int width = component->DCT_scaled_size, height = component->DCT_scaled_size;
#endif
    plane->across = component->h_samp_factor * width;
    plane->across_of = jpeg->max_h_samp_factor * DCTSIZE;
    plane->down = plane->row_count = component->v_samp_factor * height;
    plane->down_of = jpeg->max_v_samp_factor * DCTSIZE;
    plane->rows = jpeg->mem->alloc_sarray(
      (j_common_ptr)jpeg, JPOOL_IMAGE, component->width_in_blocks * width, plane->row_count);
  }
  return 1;
}

/// Reads the next rows of all planes. Beyond the image's end they are of no use.
static inline int cjpeg_read_planes(cjpeg_reader *reader) {
  struct jpeg_decompress_struct *jpeg = &reader->jpeg;
  JSAMPARRAY planes[MAX_COMPONENTS];
  if (setjmp(reader->errors.failed)) return 0;
  for (int index = 0; index < jpeg->num_components; index++) planes[index] = reader->planes[index].rows;
  return jpeg_read_raw_data(jpeg, planes, jpeg->max_v_samp_factor * DCTSIZE) != 0;
}

static inline void cjpeg_close_reader(cjpeg_reader *reader) { jpeg_destroy_decompress(&reader->jpeg); }

// MARK: Writing

// libjpeg's own destination in memory cannot be given back before the end.
typedef struct {
  struct jpeg_compress_struct jpeg;
  struct jpeg_destination_mgr destination;
  cjpeg_errors errors;
  unsigned char *bytes;
  size_t count;
} cjpeg_writer;

static inline void cjpeg_make_room(cjpeg_writer *writer) {
  size_t room = writer->count ? writer->count : 1 << 14;
  unsigned char *bytes = (unsigned char *)realloc(writer->bytes, writer->count + room);
  if (!bytes) ERREXIT1(&writer->jpeg, JERR_OUT_OF_MEMORY, 0);
  writer->bytes = bytes;
  writer->destination.next_output_byte = bytes + writer->count;
  writer->destination.free_in_buffer = room;
  writer->count += room;
}

static inline void cjpeg_init_destination(j_compress_ptr jpeg) { cjpeg_make_room((cjpeg_writer *)jpeg); }

static inline boolean cjpeg_empty_output_buffer(j_compress_ptr jpeg) {
  cjpeg_make_room((cjpeg_writer *)jpeg);
  return TRUE;
}

static inline void cjpeg_term_destination(j_compress_ptr jpeg) {
  ((cjpeg_writer *)jpeg)->count -= jpeg->dest->free_in_buffer;
}

/// Zeroed memory becomes a writer, to be closed whatever else is called. Colours have their full resolution, or half of it.
static inline int cjpeg_begin(cjpeg_writer *writer, int width, int height, int bands, int quality, int full_color) {
  struct jpeg_compress_struct *jpeg = &writer->jpeg;
  cjpeg_set_errors(&jpeg->err, &writer->errors);
  if (setjmp(writer->errors.failed)) return 0;
  jpeg_create_compress(jpeg);
  writer->destination.init_destination = cjpeg_init_destination;
  writer->destination.empty_output_buffer = cjpeg_empty_output_buffer;
  writer->destination.term_destination = cjpeg_term_destination;
  jpeg->dest = &writer->destination;
  jpeg->image_width = width;
  jpeg->image_height = height;
  jpeg->input_components = bands;
  jpeg->in_color_space = bands == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(jpeg);
  jpeg_set_quality(jpeg, quality, TRUE);
  if (full_color) jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(jpeg, TRUE);
  return 1;
}

static inline int cjpeg_write_row(cjpeg_writer *writer, const unsigned char *row) {
  JSAMPROW rows[1] = {(JSAMPROW)row};
  if (setjmp(writer->errors.failed)) return 0;
  return jpeg_write_scanlines(&writer->jpeg, rows, 1) == 1;
}

static inline int cjpeg_finish(cjpeg_writer *writer) {
  if (setjmp(writer->errors.failed)) return 0;
  jpeg_finish_compress(&writer->jpeg);
  return 1;
}

/// What was written is the caller's to free.
static inline void cjpeg_close_writer(cjpeg_writer *writer) { jpeg_destroy_compress(&writer->jpeg); }

#pragma once

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

// Depends on the declarations of arithmetic coding in jpeglib.h.
#include <jerror.h>

// libjpeg reports an error through a function that must not return, and Swift code must not be left by longjmp. So
// every call of libjpeg is made here and returns whether it succeeded. After a failure, only the message may be read.

typedef struct {
  struct jpeg_error_mgr manager;
  jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
  /// Whether a loss of pixels that nothing bounds is an error.
  int is_strict;
  /// Whether the file ends before its end marker.
  int is_cut;
  /// Whether the data so far lacks something that libjpeg replaces.
  int is_damaged;
} cjpeg_errors;

static inline void cjpeg_fail(j_common_ptr jpeg) {
  cjpeg_errors *errors = (cjpeg_errors *)jpeg->err;
  // At the end of the data libjpeg continues with inserted end markers, and may then find another error.
  if (errors->is_cut) jpeg->err->msg_code = JWRN_JPEG_EOF;
  jpeg->err->format_message(jpeg, errors->message);
  longjmp(errors->failed, 1);
}

/// Whether only the last row of MCUs is being read and that row is at most an eighth of the image.
static inline int cjpeg_is_at_end(j_decompress_ptr jpeg) {
  return jpeg->total_iMCU_rows >= 8 && jpeg->input_iMCU_row + 1 >= jpeg->total_iMCU_rows;
}

/// Handles a warning. A loss is bounded by restart markers to their interval (ITU-T T.81 section F.1.2.3 and annex
/// E.2.5), and by the end of the image if it is in the last rows. Any other loss continues to the end of the scan. It
/// is an error in strict mode and in truncated files.
static inline void cjpeg_warn(j_common_ptr common, int level) {
  j_decompress_ptr jpeg = (j_decompress_ptr)common;
  cjpeg_errors *errors = (cjpeg_errors *)common->err;
  if (level >= 0 || !common->is_decompressor) return;
  int is_bounded;
  switch (common->err->msg_code) {
  case JWRN_JPEG_EOF:
    errors->is_cut = errors->is_damaged = 1;
    // A loss in the headers or in arithmetic coding causes no further warning.
    if (!jpeg->total_iMCU_rows || (jpeg->arith_code && !cjpeg_is_at_end(jpeg))) cjpeg_fail(common);
    return;
  case JWRN_MUST_RESYNC: errors->is_damaged = 1; return;
  case JWRN_EXTRANEOUS_DATA:
    // Data that a scan did not need has been misread. Before the end of the image, many encoders leave some.
    if (jpeg->input_scan_number > 0 && common->err->msg_parm.i[1] != JPEG_EOI) errors->is_damaged = 1;
    return;
  case JWRN_HIT_MARKER:
    is_bounded = jpeg->restart_interval && jpeg->unread_marker >= JPEG_RST0 && jpeg->unread_marker <= JPEG_RST0 + 7;
    break;
  case JWRN_HUFF_BAD_CODE:
#ifdef D_ARITH_CODING_SUPPORTED
  case JWRN_ARITH_BAD_CODE:
#endif
    is_bounded = jpeg->restart_interval != 0;
    break;
  default:
    if (++common->err->num_warnings == 100) cjpeg_fail(common);
    return;
  }
  errors->is_damaged = 1;
  if (is_bounded || cjpeg_is_at_end(jpeg)) return;
  if (errors->is_strict || errors->is_cut || ++common->err->num_warnings == 100) cjpeg_fail(common);
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
  /// The numbers of samples, the last of which may be cut: `across` samples for `across_of` pixels of the image, `down`
  /// for `down_of`.
  int across, across_of, down, down_of;
  JSAMPARRAY rows;
  /// The number of rows that are read at a time.
  int row_count;
} cjpeg_plane;

typedef struct {
  struct jpeg_decompress_struct jpeg;
  cjpeg_errors errors;
  cjpeg_plane planes[MAX_COMPONENTS];
} cjpeg_reader;

/// The length of the profile before the first scan (ICC.1:2022 annex B.4), of which the caller must free the copy. 0 if
/// there is none, or if a part is missing.
static inline size_t cjpeg_profile(cjpeg_reader *reader, unsigned char **copy) {
  unsigned int length = 0;
  if (setjmp(reader->errors.failed)) return 0;
  return jpeg_read_icc_profile(&reader->jpeg, copy, &length) ? length : 0;
}

/// Initialises a reader from zeroed memory. It must be closed whatever the calls return. The file must outlive it.
static inline int cjpeg_open(cjpeg_reader *reader, const void *bytes, size_t count, int is_strict) {
  cjpeg_set_errors(&reader->jpeg.err, &reader->errors);
  reader->errors.is_strict = is_strict;
  if (setjmp(reader->errors.failed)) return 0;
  jpeg_create_decompress(&reader->jpeg);
  jpeg_mem_src(&reader->jpeg, (const unsigned char *)bytes, count);
  jpeg_save_markers(&reader->jpeg, JPEG_APP0 + 2, 0xFFFF);
  return jpeg_read_header(&reader->jpeg, TRUE) == JPEG_HEADER_OK;
}

/// Whether the scans so far contain all bits of all coefficients.
static inline int cjpeg_has_all_scans(j_decompress_ptr jpeg) {
  for (int index = 0; index < jpeg->num_components; index++) {
    // The table of a component is set when its first scan starts.
    if (!jpeg->comp_info[index].quant_table) return 0;
    if (!jpeg->coef_bits) continue;
    for (int coefficient = 0; coefficient < DCTSIZE2; coefficient++)
      if (jpeg->coef_bits[index][coefficient] != 0) return 0;
  }
  return 1;
}

/// Starts decoding pixels, reduced on each side by `shrink` (1, 2, 4 or 8), rounded up.
static inline int cjpeg_start(cjpeg_reader *reader, int shrink) {
  if (setjmp(reader->errors.failed)) return 0;
  reader->jpeg.scale_num = 1;
  reader->jpeg.scale_denom = shrink;
  if (!jpeg_start_decompress(&reader->jpeg)) return 0;
  // If there are several scans, all have been read by now.
  if (reader->errors.is_cut && jpeg_has_multiple_scans(&reader->jpeg) && !cjpeg_has_all_scans(&reader->jpeg))
    cjpeg_fail((j_common_ptr)&reader->jpeg);
  return 1;
}

/// Looks for the end marker after the last row. Has no effect before the last row has been read.
static inline void cjpeg_look_for_end(cjpeg_reader *reader) {
  if (reader->jpeg.output_scanline < reader->jpeg.output_height) return;
  if (setjmp(reader->errors.failed)) {
    // All pixels are there.
    reader->errors.is_damaged = 1;
    return;
  }
  (void)jpeg_finish_decompress(&reader->jpeg);
}

/// Inks are inverted, as all writers store CMYK JPEGs; libvips converts them to printed colours.
static inline int cjpeg_read_row(cjpeg_reader *reader, unsigned char *row) {
  struct jpeg_decompress_struct *jpeg = &reader->jpeg;
  if (setjmp(reader->errors.failed)) return 0;
  if (jpeg_read_scanlines(jpeg, &row, 1) != 1) return 0;
  if (jpeg->out_color_space == JCS_CMYK)
    for (size_t index = 0; index < (size_t)jpeg->output_width * jpeg->output_components; index++) row[index] ^= 255;
  return 1;
}

/// The error text of the last failed call.
static inline const char *cjpeg_message(cjpeg_reader *reader) { return reader->errors.message; }

/// Starts decoding the samples of each component, in their stored number. If the image is reduced, the numbers differ
/// from those of the result: libjpeg reduces components by different factors if they become equal in size that way.
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

/// Reads the next rows of all planes. Rows beyond the image's end are undefined.
static inline int cjpeg_read_planes(cjpeg_reader *reader) {
  struct jpeg_decompress_struct *jpeg = &reader->jpeg;
  JSAMPARRAY planes[MAX_COMPONENTS];
  if (setjmp(reader->errors.failed)) return 0;
  for (int index = 0; index < jpeg->num_components; index++) planes[index] = reader->planes[index].rows;
  return jpeg_read_raw_data(jpeg, planes, jpeg->max_v_samp_factor * DCTSIZE) != 0;
}

static inline void cjpeg_close_reader(cjpeg_reader *reader) { jpeg_destroy_decompress(&reader->jpeg); }

// MARK: Writing

// A destination of our own, because memory of libjpeg's destination cannot be freed before the end.
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

/// Initialises a writer from zeroed memory. It must be closed whatever the calls return. Chroma has full or half
/// resolution.
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

/// The caller must free the output.
static inline void cjpeg_close_writer(cjpeg_writer *writer) { jpeg_destroy_compress(&writer->jpeg); }

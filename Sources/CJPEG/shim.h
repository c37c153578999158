#pragma once

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

// It goes by what jpeglib.h says of arithmetic coding.
#include <jerror.h>

// libjpeg reports an error by a function that must not return, and Swift cannot jump out of one: every call of the library
// is made here, and says whether it came through. After one that did not, only the message may be asked for.

typedef struct {
  struct jpeg_error_mgr manager;
  jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
  /// Whether a loss of pixels that nothing bounds is an error.
  int is_strict;
  /// Whether the file ends before its end marker.
  int is_cut;
  /// Whether what was read so far lacks something that libjpeg makes up for.
  int is_damaged;
} cjpeg_errors;

static inline void cjpeg_fail(j_common_ptr jpeg) {
  cjpeg_errors *errors = (cjpeg_errors *)jpeg->err;
  // libjpeg goes on with end markers behind the end, and may find another fault in them.
  if (errors->is_cut) jpeg->err->msg_code = JWRN_JPEG_EOF;
  jpeg->err->format_message(jpeg, errors->message);
  longjmp(errors->failed, 1);
}

/// Whether only the last row of MCUs is being read, which is at most an eighth of the image.
static inline int cjpeg_is_at_end(j_decompress_ptr jpeg) {
  return jpeg->total_iMCU_rows >= 8 && jpeg->input_iMCU_row + 1 >= jpeg->total_iMCU_rows;
}

/// Restart markers bound a loss to their interval (ITU-T T.81 section F.1.2.3 and annex E.2.5), and the end of the image
/// bounds one in its last rows. Any other goes on to the end of the scan: it is an error where it is strict, and where
/// the file is cut.
static inline void cjpeg_warn(j_common_ptr common, int level) {
  j_decompress_ptr jpeg = (j_decompress_ptr)common;
  cjpeg_errors *errors = (cjpeg_errors *)common->err;
  if (level >= 0 || !common->is_decompressor) return;
  int is_bounded;
  switch (common->err->msg_code) {
  case JWRN_JPEG_EOF:
    errors->is_cut = errors->is_damaged = 1;
    // Neither the headers nor arithmetic coding lead to another warning.
    if (!jpeg->total_iMCU_rows || (jpeg->arith_code && !cjpeg_is_at_end(jpeg))) cjpeg_fail(common);
    return;
  case JWRN_MUST_RESYNC: errors->is_damaged = 1; return;
  case JWRN_EXTRANEOUS_DATA: return;
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

/// Whether the scans that were read have all bits of all coefficients.
static inline int cjpeg_has_all_scans(j_decompress_ptr jpeg) {
  for (int index = 0; index < jpeg->num_components; index++) {
    // Each component's is kept when its first scan begins.
    if (!jpeg->comp_info[index].quant_table) return 0;
    if (!jpeg->coef_bits) continue;
    for (int coefficient = 0; coefficient < DCTSIZE2; coefficient++)
      if (jpeg->coef_bits[index][coefficient] != 0) return 0;
  }
  return 1;
}

/// Begins with the pixels, `shrink` (1, 2, 4 or 8) times fewer on each side, rounded up.
static inline int cjpeg_start(cjpeg_reader *reader, int shrink) {
  if (setjmp(reader->errors.failed)) return 0;
  reader->jpeg.scale_num = 1;
  reader->jpeg.scale_denom = shrink;
  if (!jpeg_start_decompress(&reader->jpeg)) return 0;
  // All scans have been read by now where there are more than one.
  if (reader->errors.is_cut && jpeg_has_multiple_scans(&reader->jpeg) && !cjpeg_has_all_scans(&reader->jpeg))
    cjpeg_fail((j_common_ptr)&reader->jpeg);
  return 1;
}

/// Looks for the end marker behind the last row. Nothing happens where that was not read.
static inline void cjpeg_look_for_end(cjpeg_reader *reader) {
  if (reader->jpeg.output_scanline < reader->jpeg.output_height) return;
  if (setjmp(reader->errors.failed)) {
    // All pixels are there.
    reader->errors.is_damaged = 1;
    return;
  }
  (void)jpeg_finish_decompress(&reader->jpeg);
}

/// Inks are inverted, as all writers of JPEGs in CMYK have them: what libvips makes of them is what is printed.
static inline int cjpeg_read_row(cjpeg_reader *reader, unsigned char *row) {
  struct jpeg_decompress_struct *jpeg = &reader->jpeg;
  if (setjmp(reader->errors.failed)) return 0;
  if (jpeg_read_scanlines(jpeg, &row, 1) != 1) return 0;
  if (jpeg->out_color_space == JCS_CMYK)
    for (size_t index = 0; index < (size_t)jpeg->output_width * jpeg->output_components; index++) row[index] ^= 255;
  return 1;
}

/// Why the last call did not come through.
static inline const char *cjpeg_message(cjpeg_reader *reader) { return reader->errors.message; }

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

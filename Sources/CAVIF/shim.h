#pragma once

#include <avif/avif.h>
#include <stdio.h>

#if AVIF_VERSION < 110000
#error "libavif 0.11 or later is needed"
#endif

/// A decoder as lenient as browsers about missing parts, without additional threads.
static inline avifDecoder *cavif_open(const void *bytes, size_t count, avifDecoderSource source) {
  avifDecoder *decoder = avifDecoderCreate();
  if (!decoder) return NULL;
  decoder->maxThreads = 1;
  decoder->strictFlags = AVIF_STRICT_DISABLED;
  decoder->ignoreExif = AVIF_TRUE;
  decoder->ignoreXMP = AVIF_TRUE;
  avifDecoderSetSource(decoder, source);
  avifDecoderSetIOMemory(decoder, (const uint8_t *)bytes, count);
  return decoder;
}

/// Sets EXIF data without an orientation. The function of libavif has no result before 1.0.
static inline avifResult cavif_set_exif(avifImage *image, const uint8_t *data, size_t count) {
  (void)avifImageSetMetadataExif(image, data, count);
  return image->exif.size == count ? AVIF_RESULT_OK : AVIF_RESULT_OUT_OF_MEMORY;
}

/// An encoder for `level` 0 (best) to 63, configured as in libheif 1.15, whose file sizes for a quality are known.
static inline avifEncoder *cavif_encoder(int level, int speed) {
  avifEncoder *encoder = avifEncoderCreate();
  char text[12];
  if (!encoder) return NULL;
  snprintf(text, sizeof text, "%d", level);
  encoder->codecChoice = AVIF_CODEC_CHOICE_AOM;
  encoder->maxThreads = 1;
  encoder->speed = speed;
  encoder->minQuantizer = encoder->minQuantizerAlpha = AVIF_QUANTIZER_BEST_QUALITY;
  encoder->maxQuantizer = encoder->maxQuantizerAlpha = AVIF_QUANTIZER_WORST_QUALITY;
  avifEncoderSetCodecSpecificOption(encoder, "end-usage", "q");
  avifEncoderSetCodecSpecificOption(encoder, "cq-level", text);
  avifEncoderSetCodecSpecificOption(encoder, "tune", "ssim");
  return encoder;
}

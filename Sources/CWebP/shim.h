#pragma once

#include <stdlib.h>
#include <webp/decode.h>
#include <webp/encode.h>

/// The size of a file's image and whether it has alpha or frames. Returns 0 on success.
static inline int cwebp_read_features(const void *file, size_t length, WebPBitstreamFeatures *features) {
  return WebPGetFeatures((const uint8_t *)file, length, features);
}

/// Decodes an image in this size, R G B or R G B A. Returns 0 on success.
static inline int cwebp_decode(const void *file, size_t length, int width, int height, int has_alpha, void *pixels) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return VP8_STATUS_INVALID_PARAM;
  int status = WebPGetFeatures((const uint8_t *)file, length, &config.input);
  if (status) return status;
  int stride = width * (has_alpha ? 4 : 3);
  config.options.use_scaling = width != config.input.width || height != config.input.height;
  config.options.scaled_width = width;
  config.options.scaled_height = height;
  config.output.colorspace = has_alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = (uint8_t *)pixels;
  config.output.u.RGBA.stride = stride;
  config.output.u.RGBA.size = (size_t)stride * height;
  status = WebPDecode((const uint8_t *)file, length, &config);
  WebPFreeDecBuffer(&config.output);
  return status;
}

/// Encodes R G B or R G B A. Returns 0 on success; the caller must free the file then.
static inline int cwebp_encode(const void *pixels, int width, int height, int has_alpha, int quality,
                               unsigned char **file, size_t *length) {
  WebPConfig config;
  WebPPicture picture;
  WebPMemoryWriter writer;
  if (!WebPConfigInit(&config) || !WebPPictureInit(&picture)) return VP8_ENC_ERROR_INVALID_CONFIGURATION;
  config.quality = quality;
  config.method = 4;
  picture.width = width;
  picture.height = height;
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  WebPMemoryWriterInit(&writer);
  int stride = width * (has_alpha ? 4 : 3);
  int is_done = (has_alpha ? WebPPictureImportRGBA : WebPPictureImportRGB)(&picture, (const uint8_t *)pixels, stride) &&
                WebPEncode(&config, &picture);
  int status = is_done ? 0 : picture.error_code ? picture.error_code : VP8_ENC_ERROR_OUT_OF_MEMORY;
  WebPPictureFree(&picture);
  *file = writer.mem;
  *length = writer.size;
  if (status) free(writer.mem);
  return status;
}

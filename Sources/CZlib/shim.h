#pragma once

#define ZLIB_CONST
#include <zlib.h>

/// inflateBackInit is a macro, which Swift does not see. The window has 32 kB.
static inline int czlib_inflate_back_init(z_stream *stream, unsigned char *window) {
  return inflateBackInit(stream, 15, window);
}

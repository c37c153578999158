#pragma once

#include <lcms2.h>

/// A conversion of samples, of 16 bits if `is_deep`, from the colours of an ICC profile to 8-bit R G B in sRGB. Alpha,
/// if there is any, is copied. NULL if the profile cannot be used.
///
/// Preparing a conversion by tables takes as long as converting 50,000 to 100,000 pixels without.
static inline cmsHTRANSFORM clcms_to_srgb(const void *profile, size_t length, int is_deep, int has_alpha, int intent,
                                          int is_prepared) {
  cmsHPROFILE source = cmsOpenProfileFromMem(profile, (cmsUInt32Number)length), target = cmsCreate_sRGBProfile();
  cmsHTRANSFORM conversion = NULL;
  if (source && target) {
    // For a target of version 4, Little CMS scales the black of perceptual tables, which browsers do not.
    cmsSetProfileVersion(target, 2.1);
    cmsColorSpaceSignature space = cmsGetColorSpace(source);
    cmsUInt32Number alpha = has_alpha ? EXTRA_SH(1) : 0;
    cmsUInt32Number stored = COLORSPACE_SH(_cmsLCMScolorSpace(space)) | CHANNELS_SH(cmsChannelsOf(space)) |
                             BYTES_SH(is_deep ? 2 : 1) | alpha;
    conversion = cmsCreateTransform(source, stored, target, TYPE_RGB_8 | alpha, intent,
                                    cmsFLAGS_COPY_ALPHA | (is_prepared ? 0 : cmsFLAGS_NOOPTIMIZE));
  }
  if (source) cmsCloseProfile(source);
  if (target) cmsCloseProfile(target);
  return conversion;
}

#pragma once

/// The path by which this program was started, as the kernel was given it; NULL if it does not tell.
const char *cstart_name(void);

// liblzma: xz streams, and the bare LZMA coders of 7z's headers.
#pragma once
#include <lzma.h>

// Macros over UINT32_C and casts are not imported.
static const uint32_t moult_lzma_concatenated = LZMA_CONCATENATED;

// liblzma: xz streams, and the raw LZMA coder that patches use.
#pragma once
#include <lzma.h>

// Macros that use UINT32_C or casts are not imported.
static const uint32_t moult_lzma_concatenated = LZMA_CONCATENATED;
static const lzma_vli moult_lzma_filter_1 = LZMA_FILTER_LZMA1;
static const lzma_vli moult_lzma_filter_end = LZMA_VLI_UNKNOWN;
// The preset with the smallest output.
static const uint32_t moult_lzma_extreme = 9 | LZMA_PRESET_EXTREME;

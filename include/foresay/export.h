// foresay/export.h: marks what libforesay.so exports; everything else is hidden.
#pragma once

#if defined(__GNUC__)
#define FORESAY_API __attribute__((visibility("default")))
#else
#define FORESAY_API
#endif

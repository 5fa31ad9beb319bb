// Package tiff reads and writes TIFF files, classic and BigTIFF.
//
// [Decode] reads what golang.org/x/image/tiff does not: BigTIFF, floating-point samples of 16, 32 and 64 bits, integers of 32 bits, separate planes,
// CMYK, and the compressions JPEG and Zstandard. Bilevel files, palettes and files of 4 bits go to that package. [Encode] writes samples of 8, 16 and 32
// bits with tags of the caller.
//
// Of a file with several pages the first one is read. Input is not trusted: a count in a file is checked against the bytes of the file before anything of
// that size is allocated, except for the pixels themselves, whose number [DecodeConfig] tells.
package tiff

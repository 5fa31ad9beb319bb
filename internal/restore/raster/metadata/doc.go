// Package metadata reads what a picture file says beside its pixels, and writes it into another file: EXIF, XMP and IPTC data, ICC profile, resolution,
// and the texts of a PNG file. Each is carried as the bytes that the file has; only orientation and size are changed, because the pixels have changed.
//
// A PNG or WebP file contains no IPTC data, and a JPEG file no EXIF or XMP data above 64 KiB: these are left out.
//
// It also reads and writes the parts of files that hold these data: chunks of PNG and WebP, segments of JPEG. It checks every length against the bytes of the file.
package metadata

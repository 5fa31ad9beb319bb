package photograph

import (
	"fmt"
	"path/filepath"
	"strings"

	"ddiff/internal/restore/raster"
)

// Format is a format of files that are written.
type Format string

// The formats.
const (
	PNG  Format = "png"
	JPEG Format = "jpeg"
	TIFF Format = "tiff"
	WebP Format = "webp"
)

// Extension returns the extension of files, with its dot.
func (f Format) Extension() string {
	switch f {
	case JPEG:
		return ".jpg"
	case TIFF:
		return ".tif"
	}
	return "." + string(f)
}

// FormatOf returns the format of a file by its extension.
func FormatOf(name string) (f Format, ok bool) {
	f, ok = map[string]Format{
		".png": PNG, ".jpg": JPEG, ".jpeg": JPEG, ".jpe": JPEG, ".jfif": JPEG, ".tif": TIFF, ".tiff": TIFF, ".webp": WebP,
	}[strings.ToLower(filepath.Ext(name))]
	return f, ok
}

// ParseFormat returns the format with a name or extension, such as jpg.
func ParseFormat(name string) (Format, error) {
	if f, ok := FormatOf("." + strings.TrimPrefix(name, ".")); ok {
		return f, nil
	}
	if name == string(JPEG) || name == string(TIFF) {
		return Format(name), nil
	}
	return "", fmt.Errorf("%q is not written; the formats are png, jpeg, tiff and webp", name)
}

// NaturalFormat returns the format of the restored picture of a source: its own, if it is JPEG, WebP, or TIFF of whole bytes; otherwise PNG.
func NaturalFormat(source []byte, bits int) Format {
	switch raster.FormatOf(source) {
	case "jpeg":
		return JPEG
	case "webp":
		return WebP
	case "tiff":
		if bits >= 8 {
			return TIFF
		}
	}
	return PNG
}

package cli

import (
	"path/filepath"
	"strings"

	"ddiff/restore/item"
)

// PreviewFolder begins the name of the temporary folder of the cropped pictures that ddiff restore --preview restores.
const PreviewFolder = "ddiff-preview-"

// IsPreview reports whether an item is that of a preview.
func IsPreview(it *item.Item) bool {
	return it.Measurement != nil && strings.HasPrefix(filepath.Base(filepath.Dir(it.Measurement.Path)), PreviewFolder)
}

package photograph

import (
	"ddiff/internal/restore/raster/metadata"
	"ddiff/restore/item"
)

// Losses returns a warning for each thing of a measurement's file that its restored picture, a file of a format, cannot have.
func Losses(file []byte, to Format) (out []item.Warning) {
	for _, lost := range metadata.Losses(file, to == PNG) {
		code := WarnFile
		if lost.Colours {
			code = WarnProfile
		}
		out = append(out, item.Warning{Code: code, Text: lost.Text})
	}
	return out
}

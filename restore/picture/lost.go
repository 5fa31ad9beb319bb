package picture

import (
	"ddiff/restore/item"
	"ddiff/restore/raster/metadata"
)

// Losses returns a warning for each thing of a measurement's file that its restored picture, a file of a format, cannot have.
func Losses(file []byte, to Format) (out []item.Warning) {
	for _, lost := range metadata.Losses(file, to == PNG) {
		code := item.WarnFile
		if lost.Colours {
			code = item.WarnProfile
		}
		out = append(out, item.Warning{Code: code, Text: lost.Text})
	}
	return out
}

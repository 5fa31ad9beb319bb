package photograph

import (
	"fmt"

	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
)

// Beside returns the PNG file of a restored picture with what its measurement's file says beside the pixels. Pixels, profile and texts of the PNG file stay as
// they are. strip is that of [FileOptions].
func Beside(restored []byte, source *raster.Picture, file []byte, strip bool) ([]byte, error) {
	width, height, err := raster.Probe(restored)
	if err != nil {
		return nil, err
	}
	beside := metadata.Read(file).Upright(width, height)
	if strip {
		beside = metadata.Metadata{DPI: beside.DPI}
	}
	if beside.Profile = nil; source.ProfileFits() { // it has the profile, which says all about colours
		beside.Chunks = metadata.Texts(beside.Chunks)
	}
	out, err := beside.Insert(restored, width, height, false)
	if err != nil {
		return nil, fmt.Errorf("write metadata: %w", err)
	}
	return out, nil
}

package raster

import "ddiff/internal/restore/raster/metadata"

// upright is the EXIF orientation of an image that needs no transformation.
const upright = 1

// orientation returns the EXIF orientation of a JPEG, 1 to 8, and upright for other formats and for missing or invalid
// tags.
func orientation(c codec, data []byte) int {
	if c.name != "jpeg" {
		return upright
	}
	return metadata.Orientation(data)
}

// Transposed reports whether an EXIF orientation exchanges width and height.
func Transposed(orientation int) bool { return orientation >= 5 }

// Orient applies an EXIF orientation, 1 to 8, to an image.
func Orient(img *Image, orientation int) *Image {
	if orientation == upright {
		return img
	}
	w, h := img.Width, img.Height
	// The pixel at (x, y) of the result is source[start + x*dx + y*dy].
	var start, dx, dy int
	switch orientation {
	case 2: // mirrored left to right
		start, dx, dy = w-1, -1, w
	case 3: // half turn
		start, dx, dy = h*w-1, -1, -w
	case 4: // mirrored top to bottom
		start, dx, dy = (h-1)*w, 1, -w
	case 5: // transposed
		start, dx, dy = 0, w, 1
	case 6: // quarter turn clockwise
		start, dx, dy = (h-1)*w, -w, 1
	case 7: // transposed along the other diagonal
		start, dx, dy = h*w-1, -w, -1
	default: // 8: quarter turn counter-clockwise
		start, dx, dy = w-1, w, -1
	}
	out := New(img.Channels, h, w)
	if Transposed(orientation) {
		out.Height, out.Width = w, h
	}
	for c := range img.Channels {
		src, dst := img.Plane(c), out.Plane(c)
		i := 0
		for y := range out.Height {
			for x := range out.Width {
				dst[i] = src[start+x*dx+y*dy]
				i++
			}
		}
	}
	return out
}

package item

// ValueRange are the values of black and white in stored measurements.
type ValueRange [2]float64

// Picture describes the picture file that is the measurement of an item. It follows from the bytes of the file.
type Picture struct {
	// Width and Height are those of the restored picture, in pixels. The item's may be larger: the measurement is mirrored up to a
	// size that suits the prior, and the restored image is cropped.
	Width  int `json:"width"`
	Height int `json:"height"`
	// Grey: every pixel is grey, and so is the restored picture.
	Grey bool `json:"grey,omitempty"`
	// Bits is the number of bits per sample of the file: 8, 16, or 32 for floating-point samples. restored.png has at most 16.
	Bits int `json:"bits"`
	// Orientation is that of the file's EXIF data, 2 to 8, if the restored picture was turned upright and not the measurement. Width and Height of
	// the item are then those before.
	Orientation int `json:"orientation,omitempty"`
}

// Transposed reports whether the restored picture has the item's width and height exchanged.
func (p *Picture) Transposed() bool { return p != nil && p.Orientation >= 5 }

// RestoredSize returns width and height of the restored picture, in pixels.
func (it *Item) RestoredSize() (width, height int) {
	if p := it.Picture; p != nil {
		if p.Transposed() {
			return min(p.Width, it.Height), min(p.Height, it.Width)
		}
		return min(p.Width, it.Width), min(p.Height, it.Height)
	}
	return it.Width, it.Height
}

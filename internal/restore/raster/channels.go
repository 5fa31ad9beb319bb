package raster

import "fmt"

// InChannels returns an image in n channels, 1 or 3: itself if it has as many, else grey in each of three channels, or the luma of ITU-R BT.601 of red, green and
// blue, which is exactly their value where they are equal. Other numbers are [ErrShape].
func InChannels(img *Image, n int) (*Image, error) {
	switch {
	case img.Channels == n:
		return img, nil
	case img.Channels == 1 && n == 3:
		out := New(3, img.Height, img.Width)
		for c := range 3 {
			copy(out.Plane(c), img.Pix)
		}
		return out, nil
	case img.Channels != 3 || n != 1:
		return nil, fmt.Errorf("an image of %d channels in %d: %w", img.Channels, n, ErrShape)
	}
	red, green, blue := img.Plane(0), img.Plane(1), img.Plane(2)
	out := New(1, img.Height, img.Width)
	for i, r := range red {
		if g, b := green[i], blue[i]; g != r || b != r {
			r = float32(float64(0.299*float64(r)) + float64(0.587*float64(g)) + float64(0.114*float64(b))) // each product rounded, on every processor
		}
		out.Pix[i] = r
	}
	return out, nil
}

// DecodeResult is [Decode], but the image of a grey PNG file, as results have it, has one channel.
func DecodeResult(data []byte) (*Image, error) {
	img, err := Decode(data)
	if grey, _ := Samples(data); err == nil && grey {
		return InChannels(img, 1)
	}
	return img, err
}

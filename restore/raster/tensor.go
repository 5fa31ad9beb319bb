package raster

import (
	"bytes"
	"fmt"
)

// IsNPY reports whether data begin with the magic number of NumPy files.
func IsNPY(data []byte) bool { return bytes.HasPrefix(data, []byte(npyMagic)) }

// DecodeTensor decodes an array of rank 3 [C, H, W] from a .npy file (it drops leading dimensions of length 1) or from an
// image, whose values become [−1, 1] as in [Decode]. Errors are those of both decoders, [ErrNotFinite] and [ErrShape].
func DecodeTensor(data []byte) (*Array, error) {
	if !IsNPY(data) {
		img, err := Decode(data)
		if err != nil {
			return nil, err
		}
		return &Array{Shape: []int{img.Channels, img.Height, img.Width}, Data: img.Pix}, nil
	}
	a, err := DecodeNPY(data)
	if err != nil {
		return nil, err
	}
	if i, ok := Finite(a.Data); !ok {
		return nil, fmt.Errorf("decode npy: element %d is not a finite number: %w", i, ErrNotFinite)
	}
	for len(a.Shape) > 3 && a.Shape[0] == 1 {
		a.Shape = a.Shape[1:]
	}
	if len(a.Shape) != 3 {
		return nil, fmt.Errorf("decode npy: shape is %v, want [channels, rows, columns]: %w", a.Shape, ErrShape)
	}
	return a, nil
}

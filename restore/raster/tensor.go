package raster

import (
	"bytes"
	"fmt"
)

// IsNPY reports whether data begin with the magic number of NumPy files.
func IsNPY(data []byte) bool { return bytes.HasPrefix(data, []byte(npyMagic)) }

// DecodeMeasurement decodes a stored measurement of any rank from a .npy file. It drops leading dimensions of length 1 before
// three others. Errors are those of [DecodeNPY] and [ErrNotFinite].
func DecodeMeasurement(data []byte) (*Array, error) {
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
	return a, nil
}

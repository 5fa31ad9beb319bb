package raster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxValues is the largest number of values that [DecodeNPY] reads.
const MaxValues = 3 * MaxPixels

// npyMagic begins every NumPy file; two bytes of version follow.
const npyMagic = "\x93NUMPY"

// Array is a dense array of any rank.
type Array struct {
	// Shape has one length per dimension. An empty shape is a scalar.
	Shape []int
	// Data contains the values in C order: the last index varies fastest.
	Data []float32
}

// DecodeNPY decodes a NumPy .npy file, version 1 or 2, of float32, float64, float16 or uint8 in C order and
// little-endian. It converts values to float32 without scaling: a float64 beyond the range becomes an infinity, and NaN
// and infinities are accepted, see [Finite].
//
// Errors are [ErrFormat], [ErrTruncated] and, above [MaxValues], [ErrTooLarge]. They precede the allocation of values.
func DecodeNPY(data []byte) (*Array, error) {
	text, body, err := splitNPY(data)
	if err != nil {
		return nil, fmt.Errorf("decode npy: %w", err)
	}
	descr, shape, err := parseNPYHeader(text)
	if err != nil {
		return nil, fmt.Errorf("decode npy: header: %w", err)
	}
	count, err := countValues(shape, MaxValues)
	if err != nil {
		return nil, fmt.Errorf("decode npy: %w", err)
	}
	size, read, err := sampleReader(descr)
	if err != nil {
		return nil, fmt.Errorf("decode npy: %w", err)
	}
	switch want := int64(count) * int64(size); {
	case int64(len(body)) < want:
		return nil, fmt.Errorf("decode npy: %d of %d bytes of values: %w", len(body), want, ErrTruncated)
	case int64(len(body)) > want:
		return nil, fmt.Errorf("decode npy: %d bytes after the last value: %w", int64(len(body))-want, ErrFormat)
	}
	values := make([]float32, count)
	for i := range values {
		values[i] = read(body[i*size:])
	}
	return &Array{Shape: shape, Data: values}, nil
}

// EncodeNPY encodes values as a float32 .npy file, version 1, in C order. Equal arrays give equal bytes. [ErrShape]: the
// shape does not match the number of values.
func EncodeNPY(shape []int, values []float32) ([]byte, error) {
	if count, err := countValues(shape, len(values)); err != nil || count != len(values) {
		return nil, fmt.Errorf("encode npy: shape %v does not match %d values: %w", shape, len(values), ErrShape)
	}
	lengths := make([]string, len(shape))
	for i, n := range shape {
		lengths[i] = strconv.Itoa(n)
	}
	tuple := strings.Join(lengths, ", ")
	if len(shape) == 1 {
		tuple += "," // Python's tuple of one element
	}
	text := "{'descr': '<f4', 'fortran_order': False, 'shape': (" + tuple + "), }"
	// The header ends in a newline and the values start at a multiple of 64 bytes.
	const prefix = len(npyMagic) + 2 + 2
	padding := 63 - (prefix+len(text))%64
	text += strings.Repeat(" ", padding) + "\n"

	out := make([]byte, 0, prefix+len(text)+4*len(values))
	out = append(out, npyMagic...)
	out = append(out, 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(text)))
	out = append(out, text...)
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out, nil
}

// splitNPY returns the header's text and the values.
func splitNPY(data []byte) (text string, body []byte, err error) {
	if !matches(data, npyMagic) {
		return "", nil, fmt.Errorf("not a NumPy .npy file: %w", ErrFormat)
	}
	if len(data) < len(npyMagic)+2 {
		return "", nil, fmt.Errorf("the file ends after %d bytes: %w", len(data), ErrTruncated)
	}
	major, minor := data[len(npyMagic)], data[len(npyMagic)+1]
	rest := data[len(npyMagic)+2:]
	if (major != 1 && major != 2) || minor != 0 {
		return "", nil, fmt.Errorf("version %d.%d, want 1.0 or 2.0: %w", major, minor, ErrFormat)
	}
	lengthBytes := 2 * int(major)
	if len(rest) < lengthBytes {
		return "", nil, fmt.Errorf("the file ends in the header: %w", ErrTruncated)
	}
	size := int(binary.LittleEndian.Uint16(rest))
	if major == 2 {
		size = int(binary.LittleEndian.Uint32(rest))
	}
	if size > maxNPYHeader {
		return "", nil, fmt.Errorf("header of %d bytes, at most %d: %w", size, maxNPYHeader, ErrFormat)
	}
	rest = rest[lengthBytes:]
	if len(rest) < size {
		return "", nil, fmt.Errorf("the file ends in the header: %w", ErrTruncated)
	}
	return string(rest[:size]), rest[size:], nil
}

const (
	maxNPYHeader = 10_000 // bytes, NumPy's own limit
	maxRank      = 32     // dimensions
)

// npyEntries match the entries of the Python dictionary at the start of a .npy file.
var npyEntries = []*regexp.Regexp{
	regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([^'"]*)['"]`),
	regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`),
	regexp.MustCompile(`['"]shape['"]\s*:\s*\(([^()]*)\)`),
}

// parseNPYHeader returns the type of the values and the shape.
func parseNPYHeader(text string) (descr string, shape []int, err error) {
	var values [3]string
	for i, entry := range npyEntries {
		m := entry.FindStringSubmatch(text)
		if m == nil {
			return "", nil, fmt.Errorf("descr, fortran_order or shape is missing or has another form in %.80q: %w", text, ErrFormat)
		}
		values[i] = m[1]
	}
	if values[1] == "True" {
		return "", nil, fmt.Errorf("Fortran order is not supported; save numpy.ascontiguousarray(a): %w", ErrFormat)
	}
	shape = []int{}
	for length := range strings.SplitSeq(values[2], ",") {
		if length = strings.TrimSpace(length); length == "" { // behind the last comma
			continue
		}
		n, err := strconv.ParseUint(length, 10, 63)
		if err != nil {
			return "", nil, fmt.Errorf("want a length, have %.24q: %w", length, ErrFormat)
		}
		shape = append(shape, int(n))
	}
	if len(shape) > maxRank {
		return "", nil, fmt.Errorf("%d dimensions, at most %d: %w", len(shape), maxRank, ErrFormat)
	}
	return values[0], shape, nil
}

// countValues multiplies the shape, without overflow.
func countValues(shape []int, limit int) (int, error) {
	if slices.Contains(shape, 0) {
		return 0, nil
	}
	count := 1
	for _, n := range shape {
		if count > limit/n {
			return 0, fmt.Errorf("shape %v, the limit is %d values: %w", shape, limit, ErrTooLarge)
		}
		count *= n
	}
	return count, nil
}

// sampleReader returns the size of a value of a type, such as "<f4", in bytes and the function that decodes it.
func sampleReader(descr string) (size int, read func([]byte) float32, err error) {
	switch descr {
	case "<f4":
		return 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }, nil
	case "<f8":
		return 8, func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }, nil
	case "<f2":
		return 2, func(b []byte) float32 { return float16(binary.LittleEndian.Uint16(b)) }, nil
	case "|u1":
		return 1, func(b []byte) float32 { return float32(b[0]) }, nil
	default:
		return 0, nil, fmt.Errorf("values of type %q are not supported; save a.astype('<f4'): %w", descr, ErrFormat)
	}
}

// float16 converts an IEEE 754 half-precision number.
func float16(b uint16) float32 {
	sign := 1 - 2*float64(b>>15)
	exponent, fraction := int(b>>10&0x1f), float64(b&0x3ff)
	switch exponent {
	case 0: // zero and subnormals
		return float32(math.Copysign(math.Ldexp(fraction, -24), sign))
	case 0x1f:
		if fraction != 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	default:
		return float32(sign * math.Ldexp(1024+fraction, exponent-25))
	}
}

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

package raster

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// savedByNumPy is the output of numpy.save for numpy.arange(6, dtype='<f4').reshape(2, 3).
var savedByNumPy = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" +
	strings.Repeat(" ", 58) + "\n" +
	"\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@"

// npy returns a file with a header text and values.
func npy(major byte, header, values string) []byte {
	out := append([]byte(npyMagic), major, 0)
	if major == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	}
	return append(append(out, header...), values...)
}

func TestNPYSavedByNumPy(t *testing.T) {
	t.Parallel()
	values := []float32{0, 1, 2, 3, 4, 5}
	got, err := DecodeNPY([]byte(savedByNumPy))
	must(t, err)
	if !slices.Equal(got.Shape, []int{2, 3}) || !slices.Equal(got.Data, values) {
		t.Errorf("got %v %v", got.Shape, got.Data)
	}
	data, err := EncodeNPY([]int{2, 3}, values)
	if err != nil || string(data) != savedByNumPy {
		t.Errorf("EncodeNPY returns %q, %v; want %q", data, err, savedByNumPy)
	}
}

func TestDecodeNPYTypes(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	tests := []struct {
		name   string
		major  byte
		header string
		values string
		shape  []int
		want   []float32
	}{
		{"float64 scalar", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n",
			"\x00\x00\x00\x00\x00\x00\x0c@", []int{}, []float32{3.5}},
		{"float16", 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (5,), }\n",
			"\x00<\x00\xc0\xff{\x01\x00\x00|", []int{5}, []float32{1, -2, 65504, 0x1p-24, inf}},
		{"float16 negative", 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }\n",
			"\x00\xfc\x00\x84", []int{2}, []float32{-inf, -0x1p-14}},
		{"uint8 version 2", 2, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3), }\n",
			"\x00\x7f\xff", []int{1, 3}, []float32{0, 127, 255}},
		{"other order and quotes", 1, `{"shape":(2,),"fortran_order":False,"descr":"|u1"}`,
			"\x01\x02", []int{2}, []float32{1, 2}},
		{"no values", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0), }", "", []int{4, 0}, []float32{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeNPY(npy(tt.major, tt.header, tt.values))
			must(t, err)
			if !slices.Equal(got.Shape, tt.shape) || !slices.Equal(got.Data, tt.want) {
				t.Errorf("got %v %v, want %v %v", got.Shape, got.Data, tt.shape, tt.want)
			}
		})
	}
	got, err := DecodeNPY(npy(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", "\x01\x7e\x00\x80"))
	must(t, err)
	if v := got.Data; v[0] == v[0] || v[1] != 0 || !math.Signbit(float64(v[1])) {
		t.Errorf("half-precision NaN and -0 read as %v", v)
	}
}

func TestDecodeNPYRejects(t *testing.T) {
	t.Parallel()
	head := func(descr, order, shape string) string {
		return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }"
	}
	tests := []struct {
		name string
		data []byte
		want error
		text string
	}{
		{"empty", nil, ErrTruncated, "0 bytes"},
		{"other file", []byte("\x89PNG\r\n\x1a\n"), ErrFormat, "not a NumPy"},
		{"version 3", npy(3, head("'<f4'", "False", "(1,)"), "1234"), ErrFormat, "version 3.0"},
		{"big-endian", npy(1, head("'>f4'", "False", "(1,)"), "1234"), ErrFormat, "astype('<f4')"},
		{"integers", npy(1, head("'<i8'", "False", "(1,)"), "12345678"), ErrFormat, `"<i8"`},
		{"Fortran order", npy(1, head("'<f4'", "True", "(1,)"), "1234"), ErrFormat, "ascontiguousarray"},
		{"structured", npy(1, head("[('a', '<f4')]", "False", "(1,)"), "1234"), ErrFormat, "'descr': [('a'"},
		{"short", npy(1, head("'<f4'", "False", "(2,)"), "1234567"), ErrTruncated, "7 of 8 bytes"},
		{"long", npy(1, head("'<f4'", "False", "(2,)"), "123456789"), ErrFormat, "1 bytes after"},
		{"too large", npy(1, head("'<f4'", "False", "(30000, 30000, 3)"), ""), ErrTooLarge, "30000"},
		{"overflow", npy(1, head("'<f4'", "False", "(9223372036854775807, 4)"), ""), ErrTooLarge, "limit"},
		{"beyond int", npy(1, head("'<f4'", "False", "(92233720368547758070,)"), ""), ErrFormat, "want a length"},
		{"negative", npy(1, head("'<f4'", "False", "(-1,)"), ""), ErrFormat, "want a length"},
		{"rank", npy(1, head("'|u1'", "False", "("+strings.Repeat("1,", 33)+")"), "1"), ErrFormat, "dimensions"},
		{"missing key", npy(1, "{'descr': '<f4', 'shape': (1,)}", "1234"), ErrFormat, "fortran_order"},
		{"unknown key", npy(1, "{'type': '<f4'}", "1234"), ErrFormat, "'type'"},
		{"open string", npy(1, "{'descr: <f4}", "1234"), ErrFormat, "{'descr: <f4}"},
		{"huge header", append([]byte(npyMagic), 2, 0, 0xff, 0xff, 0xff, 0xff), ErrFormat, "header of"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := DecodeNPY(tt.data)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
	for n := range savedByNumPy {
		if _, err := DecodeNPY([]byte(savedByNumPy[:n])); !errors.Is(err, ErrTruncated) {
			t.Fatalf("first %d bytes: error %v, want ErrTruncated", n, err)
		}
	}
}

func TestEncodeNPYRejects(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{}, {3}, {2, -1}, {1 << 62, 1 << 62}, {0}, slices.Repeat([]int{1}, 33)} {
		if _, err := EncodeNPY(shape, []float32{1, 2}); !errors.Is(err, ErrShape) {
			t.Errorf("shape %v: error %v, want ErrShape", shape, err)
		}
	}
}

func FuzzDecodeNPY(f *testing.F) {
	f.Add([]byte(savedByNumPy))
	f.Add(npy(2, "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", "\x01\x7e\x00\x80"))
	f.Add(npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 0, 1), }", ""))
	f.Add(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", "12345678"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := DecodeNPY(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("error without a sentinel: %v", err)
			}
			return
		}
		again, err := EncodeNPY(a.Shape, a.Data)
		must(t, err)
		b, err := DecodeNPY(again)
		must(t, err)
		same := func(x, y float32) bool { return x == y || (x != x && y != y) }
		if !slices.Equal(a.Shape, b.Shape) || !slices.EqualFunc(a.Data, b.Data, same) {
			t.Fatalf("%v decoded as %v", a, b)
		}
	})
}

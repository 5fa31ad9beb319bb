package main_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"ddiff/restore/raster"
)

// npyFile is a NumPy file with any header.
func npyFile(header string, body []byte) []byte {
	data := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(data, header...), body...)
}

// badArrays are measurements, masks and kernels that cannot be used.
func badArrays(t *testing.T) []badInput {
	t.Helper()
	var all []badInput
	add := func(name string, data []byte, columns ...string) {
		for _, column := range columns {
			task := map[string]string{"measurement": "hdr", "mask": "inpaint_random", "kernel": "motion_deblur"}[column]
			all = append(all, failing("array/"+column+" "+name, map[string][]byte{"l.csv": []byte("image," + column + "\na.png,y.npy\n"), "a.png": grey(16), "y.npy": data},
				[]string{"(" + task + "): "}, "--images", "l.csv", "--task", task))
		}
	}
	every := []string{"measurement", "mask", "kernel"}
	values := make([]float32, 3*16*16)
	for i := range values {
		values[i] = 0.5
	}
	whole, err := raster.EncodeNPY([]int{3, 16, 16}, values)
	must(t, err)
	for _, n := range []int{0, 1, 5, 6, 8, 9, 20, 60, 127, 128, 129, 1000, len(whole) - 1} {
		add(fmt.Sprintf("cut at %d", n), whole[:n], every...)
	}
	add("longer", append(whole[:len(whole):len(whole)], 0), every...)
	for _, shape := range []string{"()", "(0,)", "(3,16,16,1)", "(-3,16,16)", "(3,16)", "(3,1000000,1000000)", "(9999999999999999999,)", "(3,16,16.5)", "(3,'x',16)", "3", "[3,16,16]", "(3,4294967296,4294967296)", strings.Repeat("(", 200)} {
		add("shape "+shape[:min(20, len(shape))], npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': "+shape+", }", whole[128:]), every...)
	}
	for _, kind := range []string{"<c8", "|O", "<U4", "|S4", ">x4", "f", "", "<f16", "<M8[s]"} {
		add("type "+kind, npyFile("{'descr': '"+kind+"', 'fortran_order': False, 'shape': (3, 16, 16), }", whole[128:]), "measurement", "mask")
	}
	for _, header := range []string{"", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 16, 16)}", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 16, 16)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 16, 16)} x", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 16, 16), 'x': 1}", "{\x1b[2J}", "__import__('os')"} {
		add(fmt.Sprintf("header %q", header), npyFile(header, whole[128:]), "measurement", "kernel")
	}
	for name, x := range map[string]float32{"NaN": float32(math.NaN()), "infinity": float32(math.Inf(1)), "-infinity": float32(math.Inf(-1))} {
		changed := append([]byte(nil), whole...)
		binary.LittleEndian.PutUint32(changed[128+400:], math.Float32bits(x))
		add(name, changed, every...)
	}
	return all
}

package shard

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"time"

	"ddiff/manifest"
)

// Position is the start of a window. The zero value is the beginning of the dataset.
type Position struct {
	// Number, Row and Item are the numbers of windows, rows and items before it.
	Number, Row, Item int
	// Listed is the number of rows of the dataset before it. It differs from Row if the dataset has changed. RowsSHA256 is the
	// digest of these rows, LastRow that of the last one.
	Listed              int
	RowsSHA256, LastRow string
	// Version is that of Config.Version for the window before it.
	Version string
	// Read is when the window before it was made.
	Read time.Time
}

// Next returns the start of the window after w.
func (w *Window) Next() Position {
	return Position{
		Number: w.Number + 1, Row: w.Row + w.Rows, Item: w.Item + w.Header.Items,
		Listed: w.Listed, RowsSHA256: w.RowsSHA256, LastRow: w.LastRow, Version: w.Version, Read: w.Read,
	}
}

// rowDigest is a running digest of the rows of a dataset. It covers the settings of a row, but neither its name, which
// depends on other rows, nor its error, which a repair removes.
type rowDigest struct {
	sum [sha256.Size]byte
	buf []byte
}

func (d *rowDigest) add(row manifest.Row) {
	b := d.buf[:0]
	b = append(b, d.sum[:]...)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	number := func(x uint64) { b = binary.LittleEndian.AppendUint64(b, x) }
	for _, s := range []string{
		row.Image, row.Measurement, row.ImageSHA256, row.Overrides.Mask, row.Overrides.Kernel, row.Overrides.Task,
	} {
		text(s)
	}
	if row.Image == "" && row.Measurement == "" {
		text(row.Name) // of a line that cannot be read
	}
	number(uint64(row.Width)<<32 | uint64(row.Height))
	if s := row.Overrides.Sigma; s != nil {
		text("sigma")
		number(math.Float64bits(float64(*s)))
	}
	if s := row.Overrides.Photons; s != nil {
		text("photons")
		number(math.Float64bits(*s))
	}
	if s := row.Overrides.Seed; s != nil {
		text("seed")
		number(*s)
	}
	for _, name := range slices.Sorted(maps.Keys(row.Overrides.Params)) {
		text(name)
		number(math.Float64bits(row.Overrides.Params[name]))
	}
	d.buf, d.sum = b, sha256.Sum256(b)
}

// digestOfRow returns the digest of one row.
func digestOfRow(row manifest.Row) string {
	var d rowDigest
	d.add(row)
	return d.String()
}

// String returns the digest in hexadecimal digits.
func (d *rowDigest) String() string { return hex.EncodeToString(d.sum[:]) }

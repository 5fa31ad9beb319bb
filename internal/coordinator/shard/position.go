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
	"ddiff/restore/item"
)

// Position is the start of a window. The zero value is the beginning of the dataset.
type Position struct {
	// Number, Row and Item are the numbers of windows, rows and items before it.
	Number, Row, Item int
	// Listed is the number of rows of the dataset before it. It differs from Row if the dataset has changed.
	Listed int
	// RowsSHA256 is the digest of these rows.
	RowsSHA256 string
	// Read is when the window before it was made.
	Read time.Time
	// Append is the part of the dataset that Listed and RowsSHA256 are about.
	Append Appended

	tail tail
}

// Next returns the start of the window after w. from is the start of w.
func (w *Window) Next(from Position) Position {
	if w.Append != from.Append {
		from.tail = ""
	}
	return Position{
		Append: w.Append, Number: w.Number + 1, Row: w.Row + w.Rows, Item: w.Item + w.Header.Items,
		Listed: w.Listed, RowsSHA256: w.RowsSHA256, Read: w.Read, tail: from.tail.append(w),
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

// String returns the digest in hexadecimal digits.
func (d *rowDigest) String() string { return hex.EncodeToString(d.sum[:]) }

// filesKey identifies the files of a row. Several rows of a list may have equal files.
type filesKey [8]byte

func newFilesKey(name string, files ...string) (k filesKey) {
	var b []byte
	for _, f := range files {
		b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
	}
	if len(b) == len(files) {
		b = append(b, name...) // no files
	}
	sum := sha256.Sum256(b)
	copy(k[:], sum[:])
	return k
}

// keyOfRow returns the key of a row of the dataset, keyOfItem that of the row of an item.
func keyOfRow(row manifest.Row) filesKey {
	return newFilesKey(row.Name, row.Image, row.Measurement, row.Overrides.Mask, row.Overrides.Kernel)
}

func keyOfItem(it item.Item) filesKey {
	path := func(s *item.Source) string {
		if s == nil {
			return ""
		}
		return s.Path
	}
	if it.FromTask {
		it.Mask, it.Kernel = nil, nil
	}
	return newFilesKey(it.Name, path(it.Image), path(it.Measurement), path(it.Mask), path(it.Kernel))
}

// TailRows is the number of rows before a position whose keys the position has: Next needs the windows of that many rows.
const TailRows = 1024

// tail has the keys of the last rows before a position. A string is comparable, as Position must be.
type tail string

func (t tail) len() int { return len(t) / len(filesKey{}) }

func (t tail) key(i int) filesKey {
	return filesKey([]byte(t[i*len(filesKey{}) : (i+1)*len(filesKey{})]))
}

// append returns the tail after the rows of w.
func (t tail) append(w *Window) tail {
	var b []byte
	for _, k := range w.rowKeys(TailRows) {
		b = append(b, k[:]...)
	}
	if missing := TailRows*len(filesKey{}) - len(b); missing > 0 {
		b = append([]byte(t[max(0, len(t)-missing):]), b...)
	}
	return tail(b)
}

// rowKeys returns the keys of the last rows, at most limit, in the order of the dataset.
func (w *Window) rowKeys(limit int) []filesKey {
	items := make([]*item.Item, 0, len(w.Items)+len(w.Failed))
	for i := range w.Items {
		items = append(items, &w.Items[i])
	}
	for i := range w.Failed {
		items = append(items, &w.Failed[i].Item)
	}
	slices.SortFunc(items, func(a, b *item.Item) int { return a.Index - b.Index })
	var keys []filesKey
	for i, it := range slices.Backward(items) {
		if i > 0 && it.Name == items[i-1].Name { // names are unique in a dataset
			continue
		}
		if keys = append(keys, keyOfItem(*it)); len(keys) == limit {
			break
		}
	}
	slices.Reverse(keys)
	return keys
}

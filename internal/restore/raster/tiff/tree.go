package tiff

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Tree is a directory with those to which its entries point, little-endian: EXIF data apart from their thumbnail.
type Tree struct {
	Entries []Entry
	Subs    map[uint16]*Tree // by the tag of the entry, which is not among Entries
}

// ReadTree reads the first directory of EXIF data or of a file, with the directories of EXIF, GPS and interoperation.
func ReadTree(data []byte) (*Tree, error) {
	d, err := First(data)
	if err != nil {
		return nil, err
	}
	left := len(data)
	return d.tree(data, 2, &left), nil
}

// tree converts a directory; depth bounds those below, and left the bytes of their values: entries of a hostile file may all have the
// same bytes. Entries without room are left out.
func (d *Directory) tree(data []byte, depth int, left *int) *Tree {
	t := &Tree{Subs: map[uint16]*Tree{}}
	for _, e := range d.Entries {
		if e.Tag == TagEXIF || e.Tag == TagGPS || e.Tag == TagInteroperation {
			if t.Subs[e.Tag] == nil && depth > 0 {
				if sub := d.Sub(data, e.Tag); sub != nil {
					t.Subs[e.Tag] = sub.tree(data, depth-1, left)
				}
			}
			continue
		}
		if *left < len(e.Data) {
			continue
		}
		*left -= len(e.Data)
		e.Data = d.little(e)
		t.Entries = append(t.Entries, e)
	}
	return t
}

// little returns the values of an entry, little-endian.
func (d *Directory) little(e Entry) []byte {
	out := slices.Clone(e.Data)
	if d.Order == binary.LittleEndian {
		return out
	}
	size := sizeOf(e.Type)
	if e.Type == TypeRational || e.Type == 10 {
		size = 4 // two numbers
	}
	for i := 0; i+size <= len(out); i += size {
		slices.Reverse(out[i : i+size])
	}
	return out
}

// Set replaces the entry with a tag.
func (t *Tree) Set(e Entry) {
	t.Entries = append(slices.DeleteFunc(t.Entries, func(old Entry) bool { return old.Tag == e.Tag }), e)
}

// Short is an entry of numbers of 16 bits.
func Short(tag uint16, values ...uint16) Entry {
	e := Entry{Tag: tag, Type: TypeShort, Count: uint64(len(values))}
	for _, v := range values {
		e.Data = binary.LittleEndian.AppendUint16(e.Data, v)
	}
	return e
}

// Long is an entry of numbers of 32 bits.
func Long(tag uint16, values ...uint32) Entry {
	e := Entry{Tag: tag, Type: TypeLong, Count: uint64(len(values))}
	for _, v := range values {
		e.Data = binary.LittleEndian.AppendUint32(e.Data, v)
	}
	return e
}

// Rational is an entry of a ratio with the denominator 1000.
func Rational(tag uint16, v float64) Entry {
	const over = 1000
	e := Long(tag, uint32(v*over+0.5), over)
	e.Type, e.Count = TypeRational, 1
	return e
}

// Bytes is an entry of bytes.
func Bytes(tag, kind uint16, data []byte) Entry {
	return Entry{Tag: tag, Type: kind, Count: uint64(len(data)), Data: data}
}

// Encode returns the tree as EXIF data: a TIFF structure without an image.
func (t *Tree) Encode() []byte {
	out := []byte("II*\x00\x00\x00\x00\x00")
	return even(t.append(out, 4))
}

// append appends the directory to a structure, and writes its place at a position of it.
func (t *Tree) append(out []byte, at int) []byte {
	entries := slices.Clone(t.Entries)
	for tag, sub := range t.Subs {
		if len(sub.Entries)+len(sub.Subs) > 0 {
			entries = append(entries, Long(tag, 0))
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Tag, b.Tag) })
	out = even(out)
	binary.LittleEndian.PutUint32(out[at:], uint32(len(out)))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(entries)))
	fields := make([]int, len(entries))
	for i, e := range entries {
		out = binary.LittleEndian.AppendUint16(out, e.Tag)
		out = binary.LittleEndian.AppendUint16(out, e.Type)
		out = binary.LittleEndian.AppendUint32(out, uint32(e.Count))
		fields[i] = len(out)
		field := [4]byte{}
		if len(e.Data) <= len(field) {
			copy(field[:], e.Data)
		}
		out = append(out, field[:]...)
	}
	out = append(out, 0, 0, 0, 0) // no further directory
	for i, e := range entries {
		if sub := t.Subs[e.Tag]; sub != nil {
			out = sub.append(out, fields[i])
			continue
		}
		if len(e.Data) > 4 {
			out = even(out)
			binary.LittleEndian.PutUint32(out[fields[i]:], uint32(len(out)))
			out = append(out, e.Data...)
		}
	}
	return out
}

func even(out []byte) []byte {
	if len(out)%2 == 1 {
		return append(out, 0)
	}
	return out
}

// SetNumber overwrites the number of an entry in place, where the first directory of the data, or one below it, has the tag with a number of 16 or 32 bits.
func SetNumber(data []byte, below, tag uint16, v uint32) {
	d, err := First(data)
	if err == nil && below != 0 {
		d = d.Sub(data, below)
	}
	if err != nil || d == nil {
		return
	}
	switch e := d.Find(tag); {
	case e == nil || e.Count < 1:
	case e.Type == TypeShort:
		d.Order.PutUint16(e.Data, uint16(v))
	case e.Type == TypeLong:
		d.Order.PutUint32(e.Data, v)
	}
}

// DropOthers ends classic data after their first directory, in place: the one with a thumbnail is no longer found.
func DropOthers(data []byte) {
	d, err := First(data)
	if err != nil || d.big {
		return
	}
	at := uint64(d.Order.Uint32(data[4:]))
	if end := at + 2 + 12*uint64(d.Order.Uint16(data[at:])); end+4 <= uint64(len(data)) {
		copy(data[end:], []byte{0, 0, 0, 0})
	}
}

// AddEntry returns a classic little-endian file with one more entry of bytes in its first directory.
func AddEntry(file []byte, tag uint16, data []byte) ([]byte, error) {
	d, err := First(file)
	if err != nil {
		return nil, err
	}
	if d.big || d.Order != binary.LittleEndian || d.Find(tag) != nil {
		return nil, damaged("no entry %d can be added", tag)
	}
	at := int(binary.LittleEndian.Uint32(file[4:]))
	n := int(binary.LittleEndian.Uint16(file[at:]))
	old := file[at+2:][:12*n]
	place := 0
	for place < n && binary.LittleEndian.Uint16(old[12*place:]) < tag {
		place++
	}
	out := even(slices.Clone(file))
	text := len(out)
	out = even(append(out, data...))
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)))
	out = binary.LittleEndian.AppendUint16(out, uint16(n+1))
	out = append(out, old[:12*place]...)
	out = binary.LittleEndian.AppendUint16(out, tag)
	out = binary.LittleEndian.AppendUint16(out, TypeUndefined)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
	out = binary.LittleEndian.AppendUint32(out, uint32(text))
	out = append(out, old[12*place:]...)
	return append(out, 0, 0, 0, 0), nil
}

package tiff

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The tags that this package uses.
const (
	tagSubfileType     = 254
	TagWidth           = 256
	TagHeight          = 257
	tagBits            = 258
	tagCompression     = 259
	tagPhotometric     = 262
	tagStripOffsets    = 273
	TagDescription     = 270
	TagOrientation     = 274
	tagSamples         = 277
	tagRowsPerStrip    = 278
	tagStripSizes      = 279
	TagXResolution     = 282
	TagYResolution     = 283
	tagPlanar          = 284
	TagResolutionUnit  = 296
	tagPredictor       = 317
	tagTileWidth       = 322
	tagTileHeight      = 323
	tagTileOffsets     = 324
	tagTileSizes       = 325
	tagSubdirectories  = 330
	tagExtraSamples    = 338
	tagSampleFormat    = 339
	tagJPEGTables      = 347
	TagXMP             = 700
	TagIPTC            = 33723
	TagPhotoshop       = 34377
	TagEXIF            = 34665
	TagProfile         = 34675
	TagGPS             = 34853
	TagInteroperation  = 40965
	tagDNGVersion      = 50706
	maxEntries         = 4096
	maxDirectoryValues = 1 << 26 // bytes of an entry
)

// The types of entries.
const (
	TypeByte      = 1
	TypeASCII     = 2
	TypeShort     = 3
	TypeLong      = 4
	TypeRational  = 5
	TypeUndefined = 7
	typeLong8     = 16
	typeIFD8      = 18
)

// ErrFormat: the file is damaged, or has a form that is not read. The message has the remedy.
var ErrFormat = errors.New("tiff")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// Entry is an entry of a directory. Data are its values in the byte order of the file.
type Entry struct {
	Tag, Type uint16
	Count     uint64
	Data      []byte
	At        int // place of Data in the file
}

// Directory is a directory of a TIFF structure, as a file has it or as EXIF data do.
type Directory struct {
	Order   binary.ByteOrder
	Entries []Entry
	big     bool
	next    uint64 // offset of the directory of the next page, 0 for none
}

// sizeOf returns the bytes of a value of a type, or 0.
func sizeOf(kind uint16) int {
	switch kind {
	case 1, 2, 6, 7:
		return 1
	case 3, 8:
		return 2
	case 4, 9, 11, 13:
		return 4
	case 5, 10, 12, 16, 17, 18:
		return 8
	}
	return 0
}

// First reads the first directory. Entries that are damaged or have an unknown type are left out.
func First(data []byte) (*Directory, error) {
	d := &Directory{}
	switch {
	case len(data) < 8:
		return nil, damaged("the file ends in its header")
	case string(data[:2]) == "II":
		d.Order = binary.LittleEndian
	case string(data[:2]) == "MM":
		d.Order = binary.BigEndian
	default:
		return nil, damaged("no TIFF structure")
	}
	at := uint64(d.Order.Uint32(data[4:]))
	switch d.Order.Uint16(data[2:]) {
	case 42:
	case 43:
		if d.big = true; len(data) < 16 || d.Order.Uint16(data[4:]) != 8 {
			return nil, damaged("the header of the BigTIFF is damaged")
		}
		at = d.Order.Uint64(data[8:])
	default:
		return nil, damaged("no TIFF structure")
	}
	err := d.read(data, at)
	return d, err
}

// Pages returns the number of pages of a file without previews and masks, 0 for another file. It looks at 1000 directories at most.
func Pages(data []byte) (n int) {
	d, err := First(data)
	for range 1000 {
		if err != nil {
			break
		}
		const preview, mask = 1, 4
		if d.or(tagSubfileType, 0)&(preview|mask) == 0 {
			n++
		}
		if d.next == 0 {
			break
		}
		page := &Directory{Order: d.Order, big: d.big}
		err = page.read(data, d.next)
		d = page
	}
	return n
}

// Sub reads the directory to which an entry points, such as [TagEXIF]. Nil: there is none.
func (d *Directory) Sub(data []byte, tag uint16) *Directory {
	at, ok := d.Number(tag)
	if !ok {
		return nil
	}
	sub := &Directory{Order: d.Order, big: d.big}
	if sub.read(data, at) != nil {
		return nil
	}
	return sub
}

func (d *Directory) read(data []byte, at uint64) error {
	counter, size, inline := 2, 12, 4
	if d.big {
		counter, size, inline = 8, 20, 8
	}
	if at > uint64(len(data)) || uint64(len(data))-at < uint64(counter) {
		return damaged("the file ends before its directory")
	}
	rest := data[at:]
	n := uint64(d.Order.Uint16(rest))
	if d.big {
		n = d.Order.Uint64(rest)
	}
	if n > maxEntries {
		return damaged("its directory has %d entries", n)
	}
	place := int(at) + counter
	if after := place + int(n)*size; len(data)-after >= inline {
		if d.next = uint64(d.Order.Uint32(data[after:])); d.big {
			d.next = d.Order.Uint64(data[after:])
		}
	}
	for range n {
		if len(data)-place < size {
			return damaged("the file ends in its directory")
		}
		b := data[place:]
		e := Entry{Tag: d.Order.Uint16(b), Type: d.Order.Uint16(b[2:])}
		field := 8
		if d.big {
			e.Count, field = d.Order.Uint64(b[4:]), 12
		} else {
			e.Count = uint64(d.Order.Uint32(b[4:]))
		}
		unit := uint64(sizeOf(e.Type))
		e.At = place + field
		place += size
		if unit == 0 || e.Count > maxDirectoryValues/unit {
			continue
		}
		length := unit * e.Count
		if length > uint64(inline) {
			to := uint64(d.Order.Uint32(b[field:]))
			if d.big {
				to = d.Order.Uint64(b[field:])
			}
			if to > uint64(len(data)) || uint64(len(data))-to < length {
				continue
			}
			e.At = int(to)
		}
		e.Data = data[e.At : e.At+int(length)]
		d.Entries = append(d.Entries, e)
	}
	return nil
}

// Find returns the entry with a tag, nil without one.
func (d *Directory) Find(tag uint16) *Entry {
	for i := range d.Entries {
		if d.Entries[i].Tag == tag {
			return &d.Entries[i]
		}
	}
	return nil
}

// Number returns the first value of an entry of whole numbers.
func (d *Directory) Number(tag uint16) (uint64, bool) {
	all := d.numbers(tag)
	if len(all) == 0 {
		return 0, false
	}
	return all[0], true
}

// or returns the first value of an entry, or another number.
func (d *Directory) or(tag uint16, other uint64) uint64 {
	if v, ok := d.Number(tag); ok {
		return v
	}
	return other
}

// Rational returns the first value of an entry as a ratio.
func (d *Directory) Rational(tag uint16) (float64, bool) {
	e := d.Find(tag)
	if e == nil || e.Type != TypeRational || e.Count < 1 {
		return 0, false
	}
	v := float64(d.Order.Uint32(e.Data)) / float64(d.Order.Uint32(e.Data[4:]))
	return v, v > 0 && !math.IsInf(v, 0)
}

// numbers returns the values of an entry of whole numbers without sign.
func (d *Directory) numbers(tag uint16) []uint64 {
	e := d.Find(tag)
	if e == nil {
		return nil
	}
	out := make([]uint64, 0, e.Count)
	for i := range int(e.Count) {
		switch e.Type {
		case TypeByte, TypeUndefined:
			out = append(out, uint64(e.Data[i]))
		case TypeShort:
			out = append(out, uint64(d.Order.Uint16(e.Data[2*i:])))
		case TypeLong, 13:
			out = append(out, uint64(d.Order.Uint32(e.Data[4*i:])))
		case typeLong8, typeIFD8:
			out = append(out, d.Order.Uint64(e.Data[8*i:]))
		default:
			return nil
		}
	}
	return out
}

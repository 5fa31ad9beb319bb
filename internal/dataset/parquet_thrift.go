package dataset

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

const (
	// maxNesting limits the structures inside each other in the metadata of a Parquet file. The format has seven.
	maxNesting = 64
	// maxElements limits the elements of all lists in a footer or a header of a page, for each of which the library
	// allocates up to 560 bytes.
	maxElements = 1 << 20
)

// checkThrift checks a structure in the compact encoding of Thrift before the library decodes it, which allocates lists by
// their claimed lengths and calls itself for each nested structure. Both could end the process: neither lack of memory nor
// lack of stack is an error that a program can handle. Data that ends early is io.ErrUnexpectedEOF.
func checkThrift(data []byte) error {
	c := thriftChecker{r: (&thrift.CompactProtocol{}).NewReaderFromBytes(data), size: len(data), elements: maxElements}
	return c.field(thrift.STRUCT, maxNesting)
}

// thriftChecker reads a structure without its values.
type thriftChecker struct {
	r        thrift.Reader
	size     int
	elements int // that further lists may have
}

// field reads the value of a field, in which depth structures may be inside each other.
func (c *thriftChecker) field(t thrift.Type, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%w: more than %d structures inside each other", ErrBadArchive, maxNesting)
	}
	switch t {
	case thrift.TRUE, thrift.FALSE: // the type is the value
		return nil
	case thrift.BINARY:
		n, err := c.r.ReadLength()
		if err != nil {
			return err
		}
		return c.skip(n)
	case thrift.LIST, thrift.SET:
		list, err := c.r.ReadList()
		if err != nil {
			return err
		}
		return c.list(int(list.Size), depth, list.Type)
	case thrift.MAP:
		m, err := c.r.ReadMap()
		if err != nil {
			return err
		}
		return c.list(int(m.Size), depth, m.Key, m.Value)
	case thrift.STRUCT:
		for {
			f, err := c.r.ReadField()
			if err != nil || f.Type == thrift.STOP {
				return err
			}
			if err := c.field(f.Type, depth-1); err != nil {
				return err
			}
		}
	}
	return c.number(t)
}

// list reads n elements, each of values of the types.
func (c *thriftChecker) list(n, depth int, types ...thrift.Type) error {
	if c.elements -= n; c.elements < 0 {
		return fmt.Errorf("%w: more than %d elements in lists; write larger row groups", ErrBadArchive, maxElements)
	}
	for range n {
		for _, t := range types {
			var err error
			if t == thrift.TRUE || t == thrift.FALSE { // an element has a byte of its own
				err = c.skip(1)
			} else {
				err = c.field(t, depth-1)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *thriftChecker) number(t thrift.Type) (err error) {
	switch t {
	case thrift.I8:
		_, err = c.r.ReadInt8()
	case thrift.I16:
		_, err = c.r.ReadInt16()
	case thrift.I32:
		_, err = c.r.ReadInt32()
	case thrift.I64:
		_, err = c.r.ReadInt64()
	case thrift.DOUBLE:
		err = c.skip(8)
	case thrift.UUID:
		err = c.skip(16)
	default:
		err = fmt.Errorf("%w: unknown type %d", ErrBadArchive, t)
	}
	return err
}

func (c *thriftChecker) skip(n int) error {
	if n > c.size-c.r.BytesRead() {
		return io.ErrUnexpectedEOF
	}
	for range n {
		if _, err := c.r.ReadInt8(); err != nil {
			return err
		}
	}
	return nil
}

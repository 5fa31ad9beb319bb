package dataset

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// countedObject is an object in memory that counts its reads. It may end earlier than its length.
type countedObject struct {
	data  []byte
	size  int64
	reads []int64 // offsets
}

func inMemory(data []byte) *countedObject { return &countedObject{data: data, size: int64(len(data))} }

func (o *countedObject) readRange(_ context.Context, offset, size int64) ([]byte, error) {
	o.reads = append(o.reads, offset)
	return o.data[min(offset, int64(len(o.data))):min(offset+size, int64(len(o.data)))], nil
}

func (o *countedObject) length() int64 { return o.size }
func (*countedObject) version() string { return "" }
func (*countedObject) close() error    { return nil }

// TestBlocks reads across the borders of blocks, and reads a block again only after four others.
func TestBlocks(t *testing.T) {
	t.Parallel()
	data := make([]byte, 5*blockBytes+100)
	for i := range data {
		data[i] = byte(i*7 + i>>12)
	}
	o := inMemory(data)
	b := newBlocks(t.Context(), o)
	read := func(offset, size int64, wantReads ...int64) {
		t.Helper()
		o.reads = nil
		p := make([]byte, size)
		n, err := b.ReadAt(p, offset)
		want := data[offset:min(offset+size, int64(len(data)))]
		short := int64(len(want)) < size
		if short != errors.Is(err, io.EOF) || !short && err != nil || !bytes.Equal(p[:n], want) {
			t.Errorf("%d bytes from %d: %d bytes, %v", size, offset, n, err)
		}
		if len(o.reads) != len(wantReads) {
			t.Fatalf("%d bytes from %d: reads at %v, want %v", size, offset, o.reads, wantReads)
		}
		for i := range wantReads {
			if o.reads[i] != wantReads[i]*blockBytes {
				t.Errorf("%d bytes from %d: reads at %v, want blocks %v", size, offset, o.reads, wantReads)
			}
		}
	}
	read(10, 5, 0)
	read(blockBytes-2, 4, 1)
	read(2*blockBytes, 2*blockBytes, 2, 3)
	read(0, blockBytes)         // in memory, and now the most recent one
	read(5*blockBytes, 100, 5)  // in place of block 1
	read(blockBytes, 1, 1)      // in place of block 2
	read(3*blockBytes, 10)      // still in memory
	read(5*blockBytes+50, 100)  // beyond the end
	read(int64(len(data)), 1)   // at the end
	read(int64(len(data))-1, 1) // the last byte
	read(4*blockBytes-1, 2, 4)  // in place of block 0
	read(0, 1, 0)
	if _, err := b.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset is read")
	}
	cut := newBlocks(t.Context(), &countedObject{data: data[:blockBytes+10], size: int64(len(data))})
	if _, err := cut.ReadAt(make([]byte, 1), blockBytes); !errors.Is(err, ErrChanged) || err.Error() != "changed since it was listed: object ends after 1048586 of 5242980 bytes" {
		t.Errorf("an object that ends early: %v", err)
	}
}

// TestCellName: the longest name is kept, and a longer one is replaced by that of the row.
func TestCellName(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{maxMemberName: strings.Repeat("a", maxMemberName), maxMemberName + 1: "row-3"} {
		if a := (&reading{}).cellAddress(Address{}, leaf{name: "image"}, 3, "folder/"+strings.Repeat("a", size)); a.name != want {
			t.Errorf("a name of %d bytes becomes %.20q", size, a.name)
		}
	}
}

// TestFileRange: a range is cut at the end of the file, and a file that is written meanwhile is refused.
func TestFileRange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.tar")
	must(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	o, err := openFile(path)
	must(t, err)
	defer o.close() //nolint:errcheck // opened for reading
	for _, c := range []struct {
		offset, size int64
		want         string
	}{{0, 10, "0123456789"}, {0, 11, "0123456789"}, {9, 1, "9"}, {9, 5, "9"}, {10, 1, ""}, {20, 5, ""}, {3, 0, ""}, {3, 4, "3456"}} {
		if got, err := o.readRange(t.Context(), c.offset, c.size); err != nil || string(got) != c.want {
			t.Errorf("%d bytes from %d: %q, %v, want %q", c.size, c.offset, got, err, c.want)
		} else if cap(got) > 10 {
			t.Errorf("%d bytes from %d: %d bytes of memory", c.size, c.offset, cap(got))
		}
	}
	if o.length() != 10 || o.version() == "" {
		t.Errorf("length %d, version %q", o.length(), o.version())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.readRange(ended, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	must(t, os.WriteFile(path, []byte("0123456789abc"), 0o600))
	if _, err := o.readRange(t.Context(), 0, 1); !errors.Is(err, ErrChanged) {
		t.Errorf("after a write: %v, want ErrChanged", err)
	}
}

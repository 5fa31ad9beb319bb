package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// blockBytes is how much of a remote object one request reads.
const blockBytes = 1 << 20

// blocksKept is how many blocks a reader of an object holds.
const blocksKept = 4

// object is an open file, bucket object or web resource, which is read in parts. It stays one
// version: when it changes, reading fails with ErrChanged.
type object interface {
	// readRange returns size bytes from offset on, fewer only at the end.
	readRange(ctx context.Context, offset, size int64) ([]byte, error)
	// length is the number of bytes.
	length() int64
	// version tells versions apart; empty when it cannot be known.
	version() string
	// close releases what open took.
	close() error
}

// open finds the object of an address, the whole of it also when the address names a part.
func (s *Sources) open(ctx context.Context, a Address) (object, error) {
	if err := s.allowed(a); err != nil {
		return nil, err
	}
	switch a.scheme {
	case schemeFile:
		return openFile(a.file)
	case schemeS3:
		return s.buckets.open(ctx, a)
	default:
		return s.web.open(ctx, a)
	}
}

// blocks reads an object in blocks and keeps the last of them. It is an io.ReaderAt.
type blocks struct {
	ctx context.Context
	obj object

	mu   sync.Mutex
	kept []block // the most recently used last
}

type block struct {
	index int64
	data  []byte
}

func newBlocks(ctx context.Context, obj object) *blocks { return &blocks{ctx: ctx, obj: obj} }

// reader reads the object from its beginning to its end, and can seek.
func (b *blocks) reader() *io.SectionReader { return io.NewSectionReader(b, 0, b.obj.length()) }

// ReadAt implements io.ReaderAt.
func (b *blocks) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, errors.New("read before the beginning")
	}
	for n < len(p) {
		if offset >= b.obj.length() {
			return n, io.EOF
		}
		data, err := b.block(offset / blockBytes)
		if err != nil {
			return n, err
		}
		from := offset % blockBytes
		if from >= int64(len(data)) {
			return n, io.ErrUnexpectedEOF
		}
		m := copy(p[n:], data[from:])
		n += m
		offset += int64(m)
	}
	return n, nil
}

// block returns one block, from memory when it is there.
func (b *blocks) block(index int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, kept := range b.kept {
		if kept.index == index {
			b.kept = append(append(b.kept[:i:i], b.kept[i+1:]...), kept)
			return kept.data, nil
		}
	}
	start := index * blockBytes
	size := min(blockBytes, b.obj.length()-start)
	data, err := b.obj.readRange(b.ctx, start, size)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != size {
		return nil, fmt.Errorf("%w: it ends after %d of %d bytes", ErrChanged, start+int64(len(data)), b.obj.length())
	}
	if len(b.kept) == blocksKept {
		b.kept = append(b.kept[:0], b.kept[1:]...)
	}
	b.kept = append(b.kept, block{index, data})
	return data, nil
}

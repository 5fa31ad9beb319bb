package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// blockBytes is the number of bytes per ranged request.
const blockBytes = 1 << 20

const maxBlocks = 4

// object is an open file, bucket object or web resource. All reads return bytes of one version, or ErrChanged.
type object interface {
	// readRange returns size bytes from offset, fewer only at the end.
	readRange(ctx context.Context, offset, size int64) ([]byte, error)
	// length is the number of bytes.
	length() int64
	// version identifies the version, empty if it is unknown.
	version() string
	// close releases the resources of the object.
	close() error
}

// sizedVersion returns the version of an object with an ETag, empty without one.
func sizedVersion(size int64, etag string) string {
	if etag == "" {
		return ""
	}
	return fmt.Sprintf("%d-%s", size, etag)
}

// open opens the complete object of an address, even if the address names a part.
func (s *Sources) open(ctx context.Context, a Address) (object, error) {
	if err := s.allowed(a); err != nil {
		return nil, err
	}
	switch a.scheme {
	case schemeFile:
		return openFile(a.file)
	case schemeS3:
		return s.buckets.object(ctx, a)
	default:
		return s.web.open(ctx, a, 0, blockBytes)
	}
}

// blocks is an io.ReaderAt that reads an object in blocks and keeps the last blocks in memory.
type blocks struct {
	ctx context.Context
	obj object

	mu     sync.Mutex
	recent []block // the most recently used last
}

type block struct {
	index int64
	data  []byte
}

func newBlocks(ctx context.Context, obj object) *blocks { return &blocks{ctx: ctx, obj: obj} }

func (b *blocks) reader() *io.SectionReader { return io.NewSectionReader(b, 0, b.obj.length()) }

// ReadAt implements io.ReaderAt.
func (b *blocks) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, errors.New("negative offset")
	}
	for n < len(p) {
		if offset >= b.obj.length() {
			return n, io.EOF
		}
		data, err := b.block(offset / blockBytes)
		if err != nil {
			return n, err
		}
		m := copy(p[n:], data[offset%blockBytes:])
		n += m
		offset += int64(m)
	}
	return n, nil
}

// block returns one block, from memory if possible.
func (b *blocks) block(index int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, found := range b.recent {
		if found.index == index {
			b.recent = append(append(b.recent[:i:i], b.recent[i+1:]...), found)
			return found.data, nil
		}
	}
	start := index * blockBytes
	size := min(blockBytes, b.obj.length()-start)
	data, err := b.obj.readRange(b.ctx, start, size)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != size {
		return nil, fmt.Errorf("%w: object ends after %d of %d bytes", ErrChanged, start+int64(len(data)), b.obj.length())
	}
	if len(b.recent) == maxBlocks {
		b.recent = append(b.recent[:0], b.recent[1:]...)
	}
	b.recent = append(b.recent, block{index, data})
	return data, nil
}

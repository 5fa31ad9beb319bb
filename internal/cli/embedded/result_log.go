package embedded

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"ddiff/manifest"
	"ddiff/storage"
)

// resultLog is the store of a simulated run. It appends results to one file, which is not synced, and passes everything
// else to the store behind it: a million synced files would measure the disk.
type resultLog struct {
	*storage.Traced
	data  *os.File
	index *os.File // a hash table of slots, with linear probing

	mu   sync.RWMutex
	size int64
}

// slot locates a result. It is 16 bytes in the index: eight of the identity, then the offset of the result in 48 bits
// and its length in 16. An empty slot is zero.
type slot struct {
	id    uint64
	place uint64
}

// indexBits is the binary logarithm of the number of slots. The file of 256 MiB is sparse.
const indexBits = 24

// newResultLog creates the files in dir, which must have none.
func newResultLog(behind *storage.Traced, dir string) (*resultLog, error) {
	l := &resultLog{Traced: behind}
	for name, file := range map[string]**os.File{"results": &l.data, "index": &l.index} {
		var err error
		if *file, err = os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
			return nil, fmt.Errorf("create result log: %w", err)
		}
	}
	return l, nil
}

// Close closes the files.
func (l *resultLog) Close() error { return errors.Join(l.data.Close(), l.index.Close()) }

// identityOf returns the start of the identity in the key of a result.
func identityOf(key string) (id uint64, ok bool) {
	rest, items := strings.CutPrefix(key, "items/")
	rest, result := strings.CutSuffix(rest, "/"+manifest.FileResult)
	var raw [8]byte
	if !items || !result || len(rest) < 2*len(raw) {
		return 0, false
	}
	_, err := hex.Decode(raw[:], []byte(rest[:2*len(raw)]))
	return binary.BigEndian.Uint64(raw[:]), err == nil
}

// find returns the slot of an identity, or the empty slot where it belongs, and the slot's offset in the index.
func (l *resultLog) find(id uint64) (s slot, offset int64, err error) {
	var raw [16]byte
	for n := id >> (64 - indexBits); ; n++ {
		offset = int64(n%(1<<indexBits)) * int64(len(raw))
		if _, err := l.index.ReadAt(raw[:], offset); errors.Is(err, io.EOF) {
			return slot{}, offset, nil
		} else if err != nil {
			return slot{}, 0, err
		}
		s = slot{binary.LittleEndian.Uint64(raw[:]), binary.LittleEndian.Uint64(raw[8:])}
		if s.place == 0 || s.id == id {
			return s, offset, nil
		}
	}
}

// Get implements storage.Store.
func (l *resultLog) Get(ctx context.Context, key string) ([]byte, error) {
	id, ok := identityOf(key)
	if !ok {
		return l.Traced.Get(ctx, key)
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	s, _, err := l.find(id)
	if err == nil && s.place == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	data := make([]byte, s.place&0xffff)
	if _, err := l.data.ReadAt(data, int64(s.place>>16)); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return data, nil
}

// Create implements storage.Store.
func (l *resultLog) Create(ctx context.Context, key string, data []byte) error {
	id, ok := identityOf(key)
	if !ok {
		return l.Traced.Create(ctx, key, data)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, offset, err := l.find(id)
	switch {
	case err != nil:
	case s.place != 0:
		err = storage.ErrExists
	case len(data) == 0 || len(data) > 0xffff:
		err = storage.ErrTooLarge
	default:
		raw := binary.LittleEndian.AppendUint64(nil, id)
		raw = binary.LittleEndian.AppendUint64(raw, uint64(l.size)<<16|uint64(len(data)))
		_, err = l.data.WriteAt(data, l.size)
		if err == nil {
			_, err = l.index.WriteAt(raw, offset)
		}
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", key, err)
	}
	l.size += int64(len(data))
	return nil
}

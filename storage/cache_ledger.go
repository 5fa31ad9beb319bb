package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Names in a cache directory besides cached files.
const (
	cacheLedgerName = "ddiff-ledger"
	cacheTempPrefix = "ddiff-temp-"
)

var errCacheBusy = errors.New("cache is busy")

// cacheLedger is the exclusive right to change a cache, and its total size. The size is stored in a file as
// decimal digits, which saves reading the directory on each change. A process that dies may leave the size
// too high, never too low.
type cacheLedger struct {
	dir  string
	now  func() time.Time
	file *os.File
}

// openCacheLedger acquires the right to change the cache. It returns errCacheBusy instead of waiting for
// another process, which may be suspended.
func openCacheLedger(dir string, now func() time.Time) (*cacheLedger, error) {
	f, err := os.OpenFile(filepath.Join(dir, cacheLedgerName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open cache ledger: %w", writeError(err))
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &cacheLedger{dir: dir, now: now, file: f}, nil
	}
	f.Close() // nothing was written
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errCacheBusy
	}
	return nil, fmt.Errorf("lock cache: %w", err)
}

func (l *cacheLedger) close() {
	l.file.Close() // a lost size is counted again
}

// reserve adds size bytes to the total. If the total would exceed limit, it first evicts files until a tenth
// of the limit is free, so that few calls read the directory.
func (l *cacheLedger) reserve(size, limit int64) error {
	total, ok := l.read()
	if !ok || total+size > limit {
		if err := l.shrink(max(0, limit-limit/10-size)); err != nil {
			return err
		}
		if total, ok = l.read(); !ok {
			return errors.New("cache ledger cannot be read")
		}
	}
	return l.write(total + size)
}

type cachedFile struct {
	name string
	size int64
	used time.Time
}

// shrink recounts the cache, evicts the least recently used files until at most limit bytes are left, and
// removes temporary files of dead writers.
func (l *cacheLedger) shrink(limit int64) error {
	files, err := l.scan()
	if err != nil {
		return fmt.Errorf("read cache: %w", err)
	}
	total := int64(0)
	for _, f := range files {
		total += f.size
	}
	slices.SortFunc(files, func(a, b cachedFile) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= limit {
			break
		}
		if err := os.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("shrink cache: %w", writeError(err))
		}
		total -= f.size
	}
	return l.write(total)
}

// scan lists the cached files and ignores foreign files.
func (l *cacheLedger) scan() ([]cachedFile, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	var files []cachedFile
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		name := filepath.Join(l.dir, entry.Name())
		switch {
		case isCacheFileName(entry.Name()):
			files = append(files, cachedFile{name: name, size: info.Size(), used: info.ModTime()})
		case strings.HasPrefix(entry.Name(), cacheTempPrefix) && info.ModTime().Before(l.now().Add(-staleAfter)):
			os.Remove(name) //nolint:errcheck // retried by the next scan
		}
	}
	return files, nil
}

// read returns the total size, and false when the file does not hold one.
func (l *cacheLedger) read() (int64, bool) {
	text, err := io.ReadAll(io.NewSectionReader(l.file, 0, 32))
	if err != nil {
		return 0, false
	}
	line, complete := strings.CutSuffix(string(text), "\n")
	total, err := strconv.ParseInt(line, 10, 64)
	return total, complete && err == nil && total >= 0
}

func (l *cacheLedger) write(total int64) error {
	// One write of fixed length: a reader finds the old size or the new size.
	if _, err := l.file.WriteAt(fmt.Appendf(nil, "%020d\n", total), 0); err != nil {
		return fmt.Errorf("write cache ledger: %w", writeError(err))
	}
	return nil
}

package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"ddiff/manifest"
	"ddiff/storage"
)

// resultLog is a store for simulated runs. It appends results to one file, which is not synced, and
// passes everything else to the store behind it: a million synced files would measure the disk.
type resultLog struct {
	*storage.Traced
	file *os.File

	mu     sync.RWMutex
	size   int64
	places map[[16]byte]int64 // by the first half of an identity: offset<<16 | length
}

// newResultLog creates the file at path, which must not exist.
func newResultLog(behind *storage.Traced, path string) (*resultLog, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create result log: %w", err)
	}
	return &resultLog{Traced: behind, file: file, places: map[[16]byte]int64{}}, nil
}

// Close closes the file.
func (l *resultLog) Close() error { return l.file.Close() }

// identityOf returns the first half of the identity of a result's key.
func identityOf(key string) (id [16]byte, ok bool) {
	rest, items := strings.CutPrefix(key, "items/")
	rest, result := strings.CutSuffix(rest, "/"+manifest.FileResult)
	if !items || !result || len(rest) < 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(rest[:2*len(id)]))
	return id, err == nil
}

// Get implements storage.Store.
func (l *resultLog) Get(ctx context.Context, key string) ([]byte, error) {
	id, ok := identityOf(key)
	if !ok {
		return l.Traced.Get(ctx, key)
	}
	l.mu.RLock()
	place, ok := l.places[id]
	l.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, storage.ErrNotFound)
	}
	data := make([]byte, place&0xffff)
	if _, err := l.file.ReadAt(data, place>>16); err != nil {
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
	if len(data) > 0xffff {
		return fmt.Errorf("create %s: %w", key, errors.ErrUnsupported)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.places[id]; ok {
		return fmt.Errorf("create %s: %w", key, storage.ErrExists)
	}
	if _, err := l.file.WriteAt(data, l.size); err != nil {
		return fmt.Errorf("create %s: %w", key, err)
	}
	l.places[id] = l.size<<16 | int64(len(data))
	l.size += int64(len(data))
	return nil
}

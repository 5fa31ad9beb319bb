package raster

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"
)

// pngHeader returns a PNG that ends after the header chunk.
func pngHeader(width, height uint32) []byte {
	chunk := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)...)
	chunk = append(chunk, 8, 2, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, chunk...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
}

// TestDecodeTooLarge is not parallel because it measures allocations.
func TestDecodeTooLarge(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(pngHeader(30000, 30000))
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 {
		t.Errorf("%d bytes were allocated for a header", bytes)
	}
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "30000x30000") || !strings.Contains(err.Error(), "134217728") {
		t.Errorf("error %v, want ErrTooLarge with size and limit", err)
	}
	// The largest possible header; its product overflows 32 bits.
	if _, err := Decode(pngHeader(1<<31-1, 1<<31-1)); err == nil {
		t.Error("no error for a header of 2^62 pixels")
	}
	if _, err := Decode(pngHeader(16384, 8193)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("above the limit: error %v, want ErrTooLarge", err)
	}
	if _, err := Decode(pngHeader(16384, 8192)); !errors.Is(err, ErrTruncated) {
		t.Errorf("at the limit: error %v, want ErrTruncated, as the pixels are missing", err)
	}
	if _, err := Decode(make([]byte, MaxBytes+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("file above the limit: error %v, want ErrTooLarge", err)
	}
}

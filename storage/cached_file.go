package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
)

// A cached file is: cacheMagic; the SHA-256 of everything after it (32 bytes); the length
// of the label (4 bytes, big-endian); the label; the object's bytes.
const (
	cacheMagic  = "ddiff cache 1\n"
	cacheHeader = len(cacheMagic) + sha256.Size + 4
)

// cacheFileName is the name of the file for a label: its SHA-256 in hexadecimal digits.
func cacheFileName(label string) string {
	sum := sha256.Sum256([]byte(label))
	return hex.EncodeToString(sum[:])
}

// isCacheFileName reports whether cacheFileName makes such names.
func isCacheFileName(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == hex.EncodedLen(sha256.Size)
}

// cacheFileSize is the size of the file with a label and an object's bytes.
func cacheFileSize(label string, data []byte) int64 {
	return int64(cacheHeader + len(label) + len(data))
}

// writeCacheFile writes a temporary file and returns its name. When it fails the file is
// gone. The file is not synced: after a power failure its checksum tells.
func writeCacheFile(dir, label string, data []byte) (name string, err error) {
	f, err := os.CreateTemp(dir, cacheTempPrefix)
	if err != nil {
		return "", writeError(err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			os.Remove(f.Name()) //nolint:errcheck // the write's error is the one to tell
			name, err = "", writeError(err)
		}
	}()
	rest := binary.BigEndian.AppendUint32(nil, uint32(len(label)))
	rest = append(rest, label...)
	sum := sha256.New()
	sum.Write(rest)
	sum.Write(data)
	head := append(append([]byte(cacheMagic), sum.Sum(nil)...), rest...)
	if _, err := f.Write(head); err != nil {
		return "", err
	}
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// decodeCacheFile returns the object's bytes in a file's content, when the checksum and the
// label are right. They share content's memory.
func decodeCacheFile(content []byte, label string) ([]byte, error) {
	rest, ok := bytes.CutPrefix(content, []byte(cacheMagic))
	if !ok || len(content) < cacheHeader {
		return nil, errors.New("not a cached file")
	}
	want, rest := rest[:sha256.Size], rest[sha256.Size:]
	if sum := sha256.Sum256(rest); !bytes.Equal(sum[:], want) {
		return nil, fmt.Errorf("cached file: %w", ErrCorrupt)
	}
	length, rest := binary.BigEndian.Uint32(rest), rest[4:]
	if uint64(length) > uint64(len(rest)) || string(rest[:length]) != label {
		return nil, errors.New("cached file of another key")
	}
	return rest[length:], nil
}

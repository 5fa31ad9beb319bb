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

// A cached file consists of cacheMagic, the SHA-256 of everything after it (32 bytes), the length of the key
// (4 bytes, big-endian), the key, and the value.
const (
	cacheMagic  = "ddiff cache 1\n"
	cacheHeader = len(cacheMagic) + sha256.Size + 4
)

func cacheFileName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// isCacheFileName reports whether name has the form that cacheFileName returns.
func isCacheFileName(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == hex.EncodedLen(sha256.Size)
}

func cacheFileSize(key string, data []byte) int64 { return int64(cacheHeader + len(key) + len(data)) }

// writeCacheFile writes a temporary file and returns its name. It leaves no file behind on failure. It does
// not sync: the checksum detects damage by a power failure.
func writeCacheFile(dir, key string, data []byte) (name string, err error) {
	f, err := os.CreateTemp(dir, cacheTempPrefix)
	if err != nil {
		return "", writeError(err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name()) //nolint:errcheck // best effort; the write error is returned
			name, err = "", writeError(err)
		}
	}()
	rest := binary.BigEndian.AppendUint32(nil, uint32(len(key)))
	rest = append(rest, key...)
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

// decodeCacheFile returns the value in the content of a cached file after checking the checksum and the key.
// The value shares memory with content.
func decodeCacheFile(content []byte, key string) ([]byte, error) {
	rest, ok := bytes.CutPrefix(content, []byte(cacheMagic))
	if !ok || len(content) < cacheHeader {
		return nil, errors.New("not a cached file")
	}
	want, rest := rest[:sha256.Size], rest[sha256.Size:]
	if sum := sha256.Sum256(rest); !bytes.Equal(sum[:], want) {
		return nil, fmt.Errorf("cached file: %w", ErrCorrupt)
	}
	length, rest := binary.BigEndian.Uint32(rest), rest[4:]
	if uint64(length) > uint64(len(rest)) || string(rest[:length]) != key {
		return nil, errors.New("cached file of another key")
	}
	return rest[length:], nil
}

package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrResultDigest: a result.json differs from its digest, because it was changed or damaged.
var ErrResultDigest = errors.New("the file differs from its sha256")

// ErrNoResultDigest: a result.json has no digest, because an earlier version wrote it.
var ErrNoResultDigest = errors.New("no sha256")

// The last member of result.json is the SHA-256 of the compact JSON of the other members.
const (
	digestBegin = `,"sha256":"`
	digestEnd   = `"}`
	digestSize  = 2 * sha256.Size
)

// EncodeResult returns the content of result.json, with a digest of all fields as its last member.
func EncodeResult(r *Result) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode result of item %s: %w", r.Item.ID, err)
	}
	sum := sha256.Sum256(data)
	data = append(data[:len(data)-1], digestBegin+hex.EncodeToString(sum[:])+digestEnd...)
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, fmt.Errorf("encode result of item %s: %w", r.Item.ID, err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// CheckResult compares a result.json with its digest. It returns ErrResultDigest, or ErrNoResultDigest for a file without
// one. White space does not count.
func CheckResult(data []byte) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return fmt.Errorf("%w: %w", ErrResultDigest, err)
	}
	all := compact.Bytes()
	at := len(all) - len(digestEnd) - digestSize
	if at < len(digestBegin) || !bytes.HasSuffix(all[:at], []byte(digestBegin)) {
		if bytes.Contains(all, []byte(digestBegin)) {
			return fmt.Errorf("%w: its sha256 is not the last member, or is cut", ErrResultDigest)
		}
		return ErrNoResultDigest
	}
	sum := sha256.Sum256(append(bytes.Clone(all[:at-len(digestBegin)]), '}'))
	if got := string(all[at : at+digestSize]); got != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("%w: %.12s, its content has %.12s", ErrResultDigest, got, hex.EncodeToString(sum[:]))
	}
	return nil
}

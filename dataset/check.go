package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"

	"ddiff/internal/regular"
	"ddiff/manifest"
)

// checkedApart is the size of a member above which its beginning is read in advance, by a request of its own.
const checkedApart = 16 << 20

func acceptAny([]byte, int64) error { return nil }

// check returns the check of a file by its name. Its errors are refusals.
func (s *Sources) check(a Address) Check {
	check := acceptAny
	switch name := a.base(); {
	case manifest.IsImage(name):
		check = s.cfg.CheckImage
	case path.Ext(name) == "" && !a.local():
		check = s.cfg.CheckOther
	}
	return func(beginning []byte, size int64) error {
		if err := check(beginning, size); err != nil {
			return &refusal{err, func(ctx context.Context) (string, error) { return s.digest(ctx, a) }}
		}
		return nil
	}
}

// refusal is the error of a file whose beginning a Check refuses.
type refusal struct {
	error
	digest func(ctx context.Context) (string, error)
}

func (r *refusal) Unwrap() error { return r.error }

// Digest reads the complete file without holding it in memory and returns its SHA-256, in lower-case hex.
func (r *refusal) Digest(ctx context.Context) (string, error) { return r.digest(ctx) }

// beginningOf returns the bytes of a complete file for a Check.
func beginningOf(data []byte) []byte { return data[:min(len(data), regular.BeginningBytes)] }

// digest returns the SHA-256 of the bytes at an address. A file above the limit is ErrTooLarge.
func (s *Sources) digest(ctx context.Context, a Address) (string, error) {
	call, cancel := context.WithTimeout(ctx, s.cfg.ObjectTimeout)
	defer cancel()
	sum := sha256.New()
	if a.part == partCell {
		data, err := s.readCell(call, a, acceptAny)
		sum.Write(data)
		return hex.EncodeToString(sum.Sum(nil)), err
	}
	limit := s.cfg.MaxBytes
	if a.local() {
		limit = manifest.MaxFileBytes
	}
	web := *s.web
	if a.part == partAll {
		web.cfg.SpoolBytes = limit
	}
	bounded := *s
	bounded.web = &web
	obj, err := bounded.open(call, a)
	if err != nil {
		return "", err
	}
	defer obj.close() //nolint:errcheck // opened for reading
	offset, size := int64(0), obj.length()
	if a.part == partMember {
		offset, size = a.offset, a.size
	}
	if size > limit {
		return "", fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, limit)
	}
	if _, err := io.Copy(sum, io.NewSectionReader(newBlocks(call, obj), offset, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

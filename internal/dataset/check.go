package dataset

import (
	"path"

	"ddiff/internal/regular"
	"ddiff/manifest"
)

// checkedApart is the size of a member above which its beginning is read in advance, by a request of its own.
const checkedApart = 16 << 20

func acceptAny([]byte, int64) error { return nil }

// check returns the check of a file by its name.
func (s *Sources) check(a Address) Check {
	switch name := a.base(); {
	case manifest.IsImage(name):
		return s.cfg.CheckImage
	case path.Ext(name) == "" && !a.local():
		return s.cfg.CheckOther
	}
	return acceptAny
}

// beginningOf returns the bytes of a complete file for a Check.
func beginningOf(data []byte) []byte { return data[:min(len(data), regular.BeginningBytes)] }

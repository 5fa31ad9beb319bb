package install

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"ddiff/internal/regular"
)

// stampFile records, in the folder of an installed release, the files whose digests were verified. A file that changed
// since then is read again before it is loaded.
const stampFile = "verified.json"

// maxStamp limits the size of a stamp in bytes.
const maxStamp = 1 << 20

// unchanged returns the source whose files are in dir. It verifies their digests, except for files that have their pinned
// size and the time of an earlier verification. Errors are those of installed.
func (r release) unchanged(dir string) (source, error) {
	if known, err := regular.Read(filepath.Join(dir, stampFile), maxStamp); err == nil {
		for _, s := range r.Sources {
			if now, err := s.stamp(dir); err == nil && bytes.Equal(known, now) {
				return s, nil
			}
		}
	}
	s, err := installed(context.Background(), r.Sources, dir, nil)
	if err == nil {
		s.writeStamp(dir)
	}
	return s, err
}

// stamp describes the present state of the files, which have their pinned sizes.
func (s source) stamp(dir string) ([]byte, error) {
	if err := s.checkSizes(dir); err != nil {
		return nil, err
	}
	type state struct {
		File     File
		Modified time.Time
	}
	var all []state
	for _, f := range s.Files {
		info, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil {
			return nil, err
		}
		all = append(all, state{f, info.ModTime().UTC()})
	}
	return json.Marshal(all)
}

// writeStamp records that all files of s in dir were verified. It is best effort: without a complete stamp, as in a cache that
// cannot be written, the next start reads the files again.
func (s source) writeStamp(dir string) {
	if now, err := s.stamp(dir); err == nil {
		_ = os.WriteFile(filepath.Join(dir, stampFile), now, 0o644)
	}
}

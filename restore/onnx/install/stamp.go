package install

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ddiff/internal/regular"
)

// stampFile records, in the folder of an installed release, the files whose digests were verified. A file that changed
// since then is read again before it is loaded.
const stampFile = "verified.json"

// maxStamp limits the size of a stamp in bytes.
const maxStamp = 1 << 20

// stamp is one verified file.
type stamp struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	SHA256   string    `json:"sha256"`
}

// unchanged returns the source whose files are in dir. It verifies their digests, except for files that have their pinned
// size and the time of an earlier verification. Errors are those of installed.
func (r release) unchanged(dir string) (source, error) {
	if known, err := readStamps(dir); err == nil {
		for _, s := range r.sources {
			now, err := s.stamps(dir)
			if err == nil && s.checkSizes(dir) == nil && slices.EqualFunc(known, now, stamp.equal) {
				return s, nil
			}
		}
	}
	s, err := installed(context.Background(), r.sources, dir, nil)
	if err == nil {
		s.stampAll(dir)
	}
	return s, err
}

// stampAll records that all files of s in dir were verified.
func (s source) stampAll(dir string) {
	if now, err := s.stamps(dir); err == nil {
		writeStamps(dir, now)
	}
}

func (s stamp) equal(other stamp) bool {
	return s.Name == other.Name && s.Size == other.Size && s.SHA256 == other.SHA256 && s.Modified.Equal(other.Modified)
}

// stamps returns the present state of the files.
func (s source) stamps(dir string) ([]stamp, error) {
	var all []stamp
	for _, m := range s.members {
		info, err := os.Stat(filepath.Join(dir, m.name))
		if err != nil {
			return nil, err
		}
		all = append(all, stamp{Name: m.name, Size: info.Size(), Modified: info.ModTime(), SHA256: m.sha256})
	}
	return all, nil
}

func readStamps(dir string) (all []stamp, err error) {
	data, err := regular.Read(filepath.Join(dir, stampFile), maxStamp)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(data, &all)
	return all, err
}

// writeStamps is best effort: without a stamp, the next start reads the files again.
func writeStamps(dir string, all []stamp) {
	data, err := json.Marshal(all)
	if err != nil {
		return
	}
	temporary, err := os.CreateTemp(dir, stampFile+".*")
	if err != nil {
		return // a read-only cache
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), filepath.Join(dir, stampFile))
	}
	if err != nil {
		if err := os.Remove(temporary.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

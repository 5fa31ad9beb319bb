package archive

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
)

// Prefix is the common prefix of the keys of a campaign's archives.
func Prefix(id string) string { return "campaigns/" + id + "/archive-" }

// Key is the storage key of an archive of a campaign. Its number is that of its entry in the index.
func Key(id string, number int) string {
	return fmt.Sprintf("%s%06d.json.gz", Prefix(id), number)
}

// ParseKey returns the number of an archive.
func ParseKey(id, key string) (number int, ok bool) {
	text, isArchive := strings.CutPrefix(key, Prefix(id))
	number, err := strconv.Atoi(strings.TrimSuffix(text, ".json.gz"))
	return number, isArchive && err == nil && key == Key(id, number)
}

// archiveSchema is the version of the archive. A program refuses archives of a higher version.
const archiveSchema = 1

// archiveFile is all that leaves the board and the streams with a campaign. Its stored form is compressed JSON lines:
// the header, one line for each failure and each dead letter, and the number of these lines.
type archiveFile struct {
	archiveHeader
	failures []failure
	letters  []queue.DeadLetter

	messages messages // that the archive replaces
}

// messages are the messages of a campaign at some time: up to two sequence numbers, and to a revision of the status.
// Messages that another leader restores later are not among them.
type messages struct{ results, dead, status uint64 }

type archiveHeader struct {
	Schema   int               `json:"schema"`
	Archived time.Time         `json:"archived"`
	Campaign manifest.Campaign `json:"campaign"`
	Status   manifest.Status   `json:"status"`
}

// failure is the outcome of an item that is not done. The results in storage prove the done items.
type failure struct {
	ID       string           `json:"id"`
	Round    int              `json:"round,omitempty"`
	Outcome  manifest.Outcome `json:"outcome"`
	Reason   string           `json:"reason,omitempty"`
	Finished time.Time        `json:"finished,omitzero"`
}

// archiveLine is a line after the header; exactly one field is set.
type archiveLine struct {
	Failure *failure          `json:"failure,omitempty"`
	Letter  *queue.DeadLetter `json:"letter,omitempty"`
	End     *int              `json:"end,omitempty"` // number of failures and letters
}

func (a *archiveFile) encode() ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	enc := json.NewEncoder(zip)
	err := enc.Encode(a.archiveHeader)
	for i := range a.failures {
		err = errors.Join(err, enc.Encode(archiveLine{Failure: &a.failures[i]}))
	}
	for i := range a.letters {
		err = errors.Join(err, enc.Encode(archiveLine{Letter: &a.letters[i]}))
	}
	n := len(a.failures) + len(a.letters)
	err = errors.Join(err, enc.Encode(archiveLine{End: &n}), zip.Close())
	if err != nil {
		return nil, fmt.Errorf("encode the archive of campaign %s: %w", a.Campaign.ID, err)
	}
	return out.Bytes(), nil
}

func decodeArchive(data []byte) (*archiveFile, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(zip)
	a := &archiveFile{}
	if err := dec.Decode(&a.archiveHeader); err != nil {
		return nil, err
	}
	if a.Schema < 1 || a.Schema > archiveSchema {
		return nil, fmt.Errorf("this program reads archives up to version %d, it has %d; use one version of ddiff everywhere", archiveSchema, a.Schema)
	}
	if err := a.Campaign.Validate(); err != nil {
		return nil, err
	}
	for {
		var line archiveLine
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
		switch {
		case line.Failure != nil:
			a.failures = append(a.failures, *line.Failure)
		case line.Letter != nil:
			a.letters = append(a.letters, *line.Letter)
		case line.End != nil:
			if n := len(a.failures) + len(a.letters); n != *line.End {
				return nil, fmt.Errorf("it has %d of %d lines", n, *line.End)
			}
			_, err := dec.Token() // reads the checksum
			if !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("after the last line: %w", errors.Join(err, errors.New("more data")))
			}
			return a, nil
		}
	}
}

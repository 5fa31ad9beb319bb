package dataset_test

import (
	"errors"
	"fmt"

	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// TestTarEnd: a shard that is cut between two members, or has members after its end, has a failed row beside its valid
// rows. The end of an archive may be short.
func TestTarEnd(t *testing.T) {
	t.Parallel()
	whole := tarFile(t, memberFile{"a.png", make([]byte, 1024)}, memberFile{"b.png", make([]byte, 700)}, memberFile{"c.png", picture(t, 1)})
	const first, second = 512 + 512 + 1024, 512 + 512 + 1024 + 512 + 1024 // the ends of a.png and b.png, after a header
	s, dir := sources(t, nil), t.TempDir()
	for name, c := range map[string]struct {
		data []byte
		rows int
		bad  bool
	}{
		"whole":                         {whole, 3, false},
		"one block at the end":          {append(append([]byte{}, whole[:second]...), make([]byte, 512)...), 2, false},
		"one block after a full member": {append(append([]byte{}, whole[:first]...), make([]byte, 512)...), 1, false},
		"filled record":                 {append(append([]byte{}, whole...), make([]byte, 10240)...), 3, false},
		"cut after a member":            {whole[:first], 1, true},
		"cut after two members":         {whole[:second], 2, true},
		"joined with another":           {append(append([]byte{}, whole...), whole...), 3, true},
		"cut in the last header":        {whole[:second+100], 2, true},
	} {
		path := write(t, dir, fmt.Sprintf("%s.tar", name), c.data)
		all, _, err := rows(t, s, manifest.Dataset{Path: path})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		valid, bad := 0, false
		for _, r := range all {
			if r.Err == nil {
				valid++
			} else {
				bad = errors.Is(r.Err, dataset.ErrBadArchive)
			}
		}
		if valid != c.rows || bad != c.bad {
			t.Errorf("%s: %d valid rows, damage reported: %v; want %d, %v", name, valid, bad, c.rows, c.bad)
		}
	}
}

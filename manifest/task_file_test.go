package manifest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// taskFileCatalogue has a task with a mask, one with a kernel, and one without a file.
func taskFileCatalogue() Catalogue {
	return testCatalogue(operator.Definition{Name: "hdr"}, operator.Definition{Name: "hole", Input: "mask", Required: true}, operator.Definition{Name: "lens", Input: "kernel"})
}

// TestTaskFiles: a task names a mask or a kernel for all rows that have none of their own.
func TestTaskFiles(t *testing.T) {
	t.Parallel()
	s, err := Parse("c.yaml", []byte("dataset: {path: photos}\ntasks: [hdr, {name: hole, mask: m.png}, {name: lens, kernel: 's3://bucket/k.npy'}]\n"), "/base")
	must(t, err)
	must(t, s.Validate(taskFileCatalogue()))
	row := Row{Name: "a", Image: "/photos/a.png"}
	files := []string{"/base/m.png", "s3://bucket/k.npy"}
	if got := TaskFiles(row, s); !slices.Equal(got, files) {
		t.Errorf("files %v, want %v", got, files)
	}
	e := NewExpander(s, strings.Repeat("ab", 32), func(item.Task, bool, int, int) (json.RawMessage, map[string]float64, error) {
		return json.RawMessage(`{}`), nil, nil
	})
	e.Known = taskFileCatalogue()
	mask, kernel, other := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64)
	probe := Probe{ImageSHA256: strings.Repeat("0", 64), Width: 8, Height: 8, TaskFiles: map[string]string{files[0]: mask, files[1]: kernel}}
	items, failed := e.Expand(row, probe, 0)
	if len(items) != 3 || len(failed) != 0 || items[0].Mask != nil || items[0].Kernel != nil || items[0].FromTask || items[1].Kernel != nil || items[2].Mask != nil ||
		*items[1].Mask != (item.Source{Path: files[0], SHA256: mask}) || *items[2].Kernel != (item.Source{Path: files[1], SHA256: kernel}) || !items[1].FromTask || !items[2].FromTask {
		t.Fatalf("items %+v, failed %+v", items, failed)
	}
	// The row's own mask is used, and equal masks make equal items, wherever they are named.
	row.Overrides = Overrides{Task: "hole", Mask: "/own.png"}
	for digest, equal := range map[string]bool{mask: true, other: false} {
		probe.MaskSHA256 = digest
		own, _ := e.Expand(row, probe, 0)
		if len(own) != 1 || own[0].Mask.Path != "/own.png" || own[0].FromTask || (own[0].ID == items[1].ID) != equal {
			t.Errorf("a row with a mask of its own: %+v", own)
		}
	}
	if got := TaskFiles(row, s); got != nil {
		t.Errorf("a row with a mask of its own needs %v", got)
	}
	// Without the digest of its file a task fails, and no other.
	row.Overrides, probe.TaskFiles = Overrides{}, map[string]string{files[1]: kernel}
	if items, failed = e.Expand(row, probe, 0); len(items) != 2 || len(failed) != 1 || !strings.Contains(failed[0].Reason, `mask "/base/m.png" has no SHA-256 digest`) {
		t.Errorf("without a digest: %d items, failed %+v", len(items), failed)
	}
}

// TestTaskFilesRefused: a file that the task does not use, two files, and an address with a password are one line each.
func TestTaskFilesRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"dataset: {path: p}\ntasks: [{name: hdr, mask: m.png}]", "c.yaml:2: tasks[0].mask: task hdr does not use a mask, it uses neither mask nor kernel; remove the mask"},
		{"dataset: {path: p}\ntasks: [{name: lens, mask: m.png}]", "c.yaml:2: tasks[0].mask: task lens does not use a mask, it uses a kernel; remove the mask"},
		{"dataset: {path: p, mask: a.png}\ntasks: [{name: hole, mask: m.png}]", "c.yaml:2: tasks[0].mask: the dataset has a mask or kernel for all tasks; remove one of them"},
		{"dataset: {path: p}\ntasks: [{name: hole, mask: 'https://me:word@host/m.png'}]", "c.yaml:2: tasks[0].mask: the address contains credentials; set them in the environment"},
	} {
		s := parsed(t, tt.text)
		if err := s.Validate(taskFileCatalogue()); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n%v, want\n%s", tt.text, err, tt.want)
		}
	}
	const want = "c.yaml:2: tasks[0].kernel: is empty; give a value or remove the field"
	if _, err := Parse("c.yaml", []byte("dataset: {path: p}\ntasks: [{name: lens, kernel: ''}]"), "/"); err == nil || err.Error() != want {
		t.Errorf("empty: %v, want %s", err, want)
	}
}

// TestUnclippedKeepsIdentities: the field reaches the items and is no part of them.
func TestUnclippedKeepsIdentities(t *testing.T) {
	t.Parallel()
	plain := item.Item{Name: "a", Task: "hdr", Solver: json.RawMessage(`{}`)}
	marked := plain
	marked.Unclipped, marked.FromTask = true, true
	for _, it := range []*item.Item{&plain, &marked} {
		must(t, it.Identify())
	}
	if plain.ID != marked.ID {
		t.Error("unclipped or from_task changes the identity")
	}
	s, err := Parse("c.yaml", []byte("dataset: {path: p}\ntasks: [hdr]\nunclipped: true\n"), "/")
	if err != nil || !s.Unclipped {
		t.Fatalf("unclipped: %v, %v", s, err)
	}
}

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/operator"
)

func testSpec() *Spec {
	s := Default()
	s.Name, s.Dataset.Path = "demo", "/photos"
	s.Tasks = []item.Task{
		{Name: "hdr"},
		{Name: "super_resolution", Params: map[string]float64{"factor": 4}, Sigma: ptr(item.Sigma(0.02)), Steps: 100},
	}
	s.Methods, s.Runs, s.Seed = []string{"ddiff", "hqs"}, 2, 7
	return s
}

func testProbe() Probe {
	return Probe{ImageSHA256: strings.Repeat("ab", 32), Width: 256, Height: 128}
}

// testResolve records nothing and depends on all it is given. It refuses factors above 8.
func testResolve(task item.Task, _ bool, width, height int) (json.RawMessage, map[string]float64, error) {
	params := map[string]float64{"default": 1}
	for name, x := range task.Params {
		params[name] = x
	}
	if !(params["factor"] <= 8) {
		return nil, nil, fmt.Errorf("factor %v is too large for %dx%d", params["factor"], width, height)
	}
	solver, err := json.Marshal(map[string]any{"method": task.Method, "steps": task.Steps, "noise": float64(*task.Sigma)})
	return solver, params, err
}

// grid prints where each item sits.
func grid(items []item.Item) string {
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintf(&b, "%d %s %s %d\n", it.Index, it.Task, it.Method, it.Run)
	}
	return b.String()
}

func TestExpand(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	row := Row{Index: 1, Name: "cat", Image: "/photos/cat.png"}
	items, failed := NewExpander(spec, "prior", testResolve).Expand(row, testProbe(), 10)
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	want := "10 hdr ddiff 0\n11 hdr ddiff 1\n12 hdr hqs 0\n13 hdr hqs 1\n" +
		"14 super_resolution ddiff 0\n15 super_resolution ddiff 1\n16 super_resolution hqs 0\n17 super_resolution hqs 1\n"
	if got := grid(items); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	wantItem := item.Item{
		ID: items[7].ID, Campaign: spec.ID(""), Index: 17, Name: "cat",
		Image: &item.Source{Path: "/photos/cat.png", SHA256: strings.Repeat("ab", 32)},
		Width: 256, Height: 128, Fit: item.FitCenterCrop, Task: "super_resolution",
		Params: map[string]float64{"default": 1, "factor": 4}, Sigma: 0.02, Seed: 7, Run: 1,
		Method: "hqs", Solver: json.RawMessage(`{"method":"hqs","noise":0.02,"steps":100}`), Prior: "prior", Preset: "natural",
	}
	if !reflect.DeepEqual(items[7], wantItem) {
		t.Errorf("got  %+v\nwant %+v", items[7], wantItem)
	}
	seen := map[string]bool{}
	for _, it := range items {
		if len(it.ID) != 64 || seen[it.ID] {
			t.Errorf("item %d has the ID %q", it.Index, it.ID)
		}
		seen[it.ID] = true
	}
}

// A task may have its own number of runs. It does not make two equal tasks different: they would share items.
func TestExpandRunsOfATask(t *testing.T) {
	t.Parallel()
	spec := parsed(t, "dataset: {path: /p}\nruns: 2\ntasks: [hdr, {name: super_resolution, runs: 3}]\n")
	row := Row{Name: "cat", Image: "/photos/cat.png"}
	items, failed := NewExpander(spec, "prior", testResolve).Expand(row, testProbe(), 0)
	want := "0 hdr ddiff 0\n1 hdr ddiff 1\n2 super_resolution ddiff 0\n3 super_resolution ddiff 1\n4 super_resolution ddiff 2\n"
	if got := grid(items); got != want || len(failed) > 0 || ItemsPerRow(row, spec) != 5 {
		t.Errorf("%d announced, %d failed, got:\n%swant:\n%s", ItemsPerRow(row, spec), len(failed), got, want)
	}
	row.Overrides.Task = "foreign"
	if n := ItemsPerRow(row, spec); n != 2 {
		t.Errorf("a task of the row has %d runs, want the campaign's 2", n)
	}
	for runs, want := range map[string]string{"-1": "tasks[0].runs: -1 is out of range", "1001": "tasks[0].runs: 1001 is out of range"} {
		_, err := Parse("c.yaml", []byte("dataset: {path: /p}\ntasks: [{name: hdr, runs: "+runs+"}]\n"), "/")
		checkError(t, "runs: "+runs, err, want)
	}
	spec.Tasks = []item.Task{{Name: "hdr"}, {Name: "hdr", Runs: 3}}
	if err := spec.Validate(testCatalogue(operator.Definition{Name: "hdr"})); err == nil ||
		!strings.Contains(err.Error(), `task "hdr" is repeated`) {
		t.Errorf("equal tasks with other runs: %v", err)
	}
}

func TestExpandOverrides(t *testing.T) {
	t.Parallel()
	digest := func(c string) string { return strings.Repeat(c, 64) }
	row := Row{Name: "x", Measurement: "/m/y.npy", Overrides: Overrides{
		Task: "super_resolution", Sigma: ptr(item.Sigma(0.0)), Seed: ptr(uint64(0)),
		Params: map[string]float64{"factor": 2, "extra": 0}, Mask: "/m/mask.png", Kernel: "/m/k.npy",
	}}
	probe := Probe{MeasurementSHA256: digest("1"), MaskSHA256: digest("2"), KernelSHA256: digest("3"), Width: 8, Height: 8}
	spec := testSpec()
	e := NewExpander(spec, "prior", testResolve)
	e.Known = testCatalogue(operator.Definition{Name: "other"}) // which files the row may have is not known
	items, failed := e.Expand(row, probe, 0)
	if len(items) != 4 || len(failed) != 0 {
		t.Fatalf("%d items, failed %+v", len(items), failed)
	}
	it := items[0]
	if it.Task != "super_resolution" || it.Sigma != 0 || it.Seed != 0 || it.Image != nil ||
		!reflect.DeepEqual(it.Params, map[string]float64{"default": 1, "factor": 2, "extra": 0}) ||
		*it.Measurement != (item.Source{Path: "/m/y.npy", SHA256: digest("1")}) || *it.Mask != (item.Source{Path: "/m/mask.png", SHA256: digest("2")}) ||
		*it.Kernel != (item.Source{Path: "/m/k.npy", SHA256: digest("3")}) || !strings.Contains(string(it.Solver), `"steps":100`) {
		t.Errorf("%+v", it)
	}
	if spec.Tasks[1].Params["factor"] != 4 {
		t.Error("a row's override changed the campaign")
	}
}

// A row may ask for a task that the campaign does not have.
func TestExpandForeignTask(t *testing.T) {
	t.Parallel()
	row := Row{Name: "x", Image: "/x.png", Overrides: Overrides{Task: "motion_deblur"}}
	items, failed := NewExpander(testSpec(), "prior", testResolve).Expand(row, testProbe(), 0)
	if len(items) != 4 || len(failed) != 0 || items[0].Task != "motion_deblur" || items[0].Sigma != 0.05 {
		t.Errorf("items:\n%sfailed %+v", grid(items), failed)
	}
}

// Whatever goes wrong, the manifest has the same number of entries.
func TestExpandCounts(t *testing.T) {
	t.Parallel()
	bad := &FieldError{File: "list.csv", Line: 3, Field: "image", Err: errors.New("no such file")}
	image := func(o Overrides) Row { return Row{Name: "x", Image: "/x.png", Overrides: o} }
	for _, tc := range []struct {
		name          string
		row           Row
		probe         Probe
		items, failed int
		reason        string
	}{
		{"sound", image(Overrides{}), testProbe(), 8, 0, ""},
		{"one task of two fails", image(Overrides{Params: map[string]float64{"factor": 9}, Task: "super_resolution"}), testProbe(), 0, 4,
			"task super_resolution, method ddiff: factor 9 is too large for 256x128"},
		{"row error", Row{Name: "x", Image: "/x.png", Err: bad}, Probe{}, 0, 8, "list.csv:3: image: no such file"},
		{"row error with a task", Row{Name: "x", Overrides: Overrides{Task: "hdr"}, Err: bad}, Probe{}, 0, 4, "list.csv:3: image: no such file"},
		{"row error with a foreign task", Row{Name: "x", Overrides: Overrides{Task: "other"}, Err: bad}, Probe{}, 0, 4, "list.csv:3: image: no such file"},
		{"no digest", image(Overrides{}), Probe{Width: 8, Height: 8}, 0, 8, `image "/x.png" has no SHA-256 digest`},
		{"no digest of the mask", image(Overrides{Mask: "/m.png"}), testProbe(), 0, 8, `mask "/m.png" has no SHA-256 digest`},
		{"no size", image(Overrides{}), Probe{ImageSHA256: strings.Repeat("ab", 32)}, 0, 8, "working size 0x0 is not positive"},
		{"no width", image(Overrides{}), Probe{ImageSHA256: strings.Repeat("ab", 32), Height: 1}, 0, 8, "working size 0x1 is not positive"},
		{"no height", image(Overrides{}), Probe{ImageSHA256: strings.Repeat("ab", 32), Width: 1}, 0, 8, "working size 1x0 is not positive"},
		{"one pixel", image(Overrides{}), Probe{ImageSHA256: strings.Repeat("ab", 32), Width: 1, Height: 1}, 8, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spec := testSpec()
			items, failed := NewExpander(spec, "prior", testResolve).Expand(tc.row, tc.probe, 100)
			if len(items) != tc.items || len(failed) != tc.failed || ItemsPerRow(tc.row, spec) != tc.items+tc.failed {
				t.Fatalf("%d items, %d failed, %d announced; want %d and %d", len(items), len(failed), ItemsPerRow(tc.row, spec), tc.items, tc.failed)
			}
			seen := map[string]bool{}
			for i, r := range failed {
				if r.Outcome != item.OutcomeFailed || r.Schema != item.SchemaVersion || i == 0 && r.Reason != tc.reason {
					t.Errorf("result %+v, want the reason %q", r, tc.reason)
				}
				if r.Item.Index != 100+i || len(r.Item.ID) != 64 || seen[r.Item.ID] || r.Item.Campaign != spec.ID("") {
					t.Errorf("item %+v", r.Item)
				}
				seen[r.Item.ID] = true
				if _, err := json.Marshal(r); err != nil {
					t.Errorf("the result cannot be stored: %v", err)
				}
			}
		})
	}
}

// If one task does not resolve, the other tasks are expanded and the indices have no gap.
func TestExpandPartly(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	spec.Tasks[1].Params["factor"] = 16
	row := Row{Name: "x", Image: "/x.png", List: "l.csv", Line: 7}
	items, failed := NewExpander(spec, "prior", testResolve).Expand(row, testProbe(), 0)
	if reason := failed[0].Reason; !strings.HasPrefix(reason, "l.csv:7: task super_resolution, method ddiff: ") {
		t.Errorf("reason %q names no line of the list", reason)
	}
	var rest []item.Item
	for _, r := range failed {
		rest = append(rest, r.Item)
	}
	want := "0 hdr ddiff 0\n1 hdr ddiff 1\n2 hdr hqs 0\n3 hdr hqs 1\n" +
		"4 super_resolution ddiff 0\n5 super_resolution ddiff 1\n6 super_resolution hqs 0\n7 super_resolution hqs 1\n"
	if got := grid(items) + grid(rest); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestPlaceholderIDs(t *testing.T) {
	t.Parallel()
	id := func(row Row, spec *Spec) string {
		_, failed := NewExpander(spec, "prior", testResolve).Expand(row, Probe{}, 0)
		return failed[0].Item.ID
	}
	row := Row{Index: 4, Name: "a", Image: "/a.png", Err: errors.New("x")}
	want := id(row, testSpec())

	later := row
	later.Index, later.Err = 9, errors.New("another reason")
	if got := id(later, testSpec()); got != want {
		t.Error("the ID depends on the position or the reason")
	}
	other := row
	other.Name = "b"
	seeded := testSpec()
	seeded.Seed++
	if id(other, testSpec()) == want || id(row, seeded) == want {
		t.Error("two rows or two campaigns share an ID")
	}
	good := row
	good.Err = nil
	items, _ := NewExpander(testSpec(), "prior", testResolve).Expand(good, testProbe(), 0)
	if items[0].ID == want {
		t.Error("the mended row has the ID of the failed one")
	}
}

// JSON distinguishes -0 from 0; an identity must not.
func TestExpandNegativeZero(t *testing.T) {
	t.Parallel()
	minus := -1.0
	minus *= 0
	expand := func(zero float64) string {
		row := Row{Name: "x", Image: "/x.png", Overrides: Overrides{Sigma: ptr(item.Sigma(zero)), Params: map[string]float64{"p": zero}}}
		resolve := func(task item.Task, _ bool, _, _ int) (json.RawMessage, map[string]float64, error) {
			return json.RawMessage(`{}`), task.Params, nil
		}
		items, failed := NewExpander(testSpec(), "prior", resolve).Expand(row, testProbe(), 0)
		if len(failed) > 0 {
			t.Fatal(failed)
		}
		return items[0].ID
	}
	if expand(minus) != expand(0) {
		t.Error("-0 and 0 are two items")
	}
}

// A resolver may return the same map several times.
func TestExpandDoesNotChangeTheResolversMap(t *testing.T) {
	t.Parallel()
	minus := -1.0
	minus *= 0
	shared := map[string]float64{"p": minus}
	resolve := func(item.Task, bool, int, int) (json.RawMessage, map[string]float64, error) {
		return json.RawMessage(`{}`), shared, nil
	}
	items, _ := NewExpander(testSpec(), "prior", resolve).Expand(Row{Name: "x", Image: "/x.png"}, testProbe(), 0)
	items[0].Params["p"] = 5
	if shared["p"] != 0 || !(1/shared["p"] <= 0) || items[1].Params["p"] != 0 {
		t.Errorf("shared map %v, next item %v", shared, items[1].Params)
	}
}

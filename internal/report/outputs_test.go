package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/internal/tune"
	"ddiff/restore/item"
	"ddiff/restore/method"
)

// output is a store with results, and with failures of one campaign.
func output(t *testing.T, results ...item.Result) result.Output {
	t.Helper()
	store := reporttest.NewMemory()
	var failures []byte
	for _, r := range results {
		data, err := json.Marshal(r)
		reporttest.Must(t, err)
		if r.Outcome == item.OutcomeDone {
			store.Files[item.Key(r.Item.ID, item.FileResult)] = data
			store.Files[item.Key(r.Item.ID, item.FileTruth)] = []byte("a picture")
		} else {
			failures = append(failures, append(data, '\n')...)
		}
	}
	if failures != nil {
		store.Files[result.FailuresFolder+"campaign/000000.jsonl"] = failures
	}
	return result.Output{Address: "out", Store: store}
}

func read(t *testing.T, f *result.Filter, outputs ...result.Output) (names []string, err error) {
	t.Helper()
	for r, e := range f.Select(result.Results(t.Context(), outputs)) {
		if e != nil {
			err = e
			continue
		}
		names = append(names, fmt.Sprintf("%s %s %s", r.Item.Name, r.Item.Task, r.Outcome))
	}
	slices.Sort(names)
	return names, err
}

func TestResultsOfSeveralOutputs(t *testing.T) {
	t.Parallel()
	failed := reporttest.Ended(item.OutcomeFailed, "no such file")
	first := output(t, reporttest.Result(t, "hdr", "ddiff", "a", 0), reporttest.Result(t, "hdr", "ddiff", "b", 0, failed), reporttest.Result(t, "hdr", "ddiff", "c", 0, failed))
	second := output(t, reporttest.Result(t, "hdr", "ddiff", "a", 0), reporttest.Result(t, "hdr", "ddiff", "b", 0), reporttest.Result(t, "motion_deblur", "ddiff", "a", 0))
	got, err := read(t, &result.Filter{}, first, second)
	want := []string{"a hdr done", "a motion_deblur done", "b hdr done", "c hdr failed"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("results %v, error %v, want %v", got, err, want)
	}
}

func TestResultsNameADamagedFile(t *testing.T) {
	t.Parallel()
	r := reporttest.Result(t, "hdr", "ddiff", "a", 0)
	key := item.Key(r.Item.ID, item.FileResult)
	for name, data := range map[string]string{"cut": `{"schema":1,`, "other": `{"outcome":"done","item":{"id":"x"}}`} {
		o := output(t, r)
		o.Store.(*reporttest.Memory).Files[key] = []byte(data)
		if _, err := read(t, &result.Filter{}, o); err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "run its campaign again") {
			t.Errorf("%s: error %v, want one that names %s", name, err, key)
		}
	}
	o := output(t, reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Ended(item.OutcomeDead, "x")))
	o.Store.(*reporttest.Memory).Files[result.FailuresFolder+"campaign/000000.jsonl"] = []byte("{}\nnonsense\n")
	if _, err := read(t, &result.Filter{}, o); err == nil || !strings.Contains(err.Error(), "line 2 of failures/campaign/000000.jsonl") {
		t.Errorf("error %v, want one that names the line", err)
	}
}

// TestForeignFilesAreNoRecords: a desktop leaves files of its own in every folder, and tuning/ may be an output itself.
func TestForeignFilesAreNoRecords(t *testing.T) {
	t.Parallel()
	o := output(t, reporttest.Result(t, "hdr", "ddiff", "a", 0))
	for _, folder := range []string{item.ItemsFolder, result.ScoresFolder, result.FailuresFolder, tune.Folder} {
		o.Store.(*reporttest.Memory).Files[folder+".DS_Store"] = []byte("x")
	}
	o.Store.(*reporttest.Memory).Files[tune.Folder+KeySummaryJSON] = []byte("{}")
	if names, err := read(t, &result.Filter{}, o); err != nil || len(names) != 1 {
		t.Errorf("results %v, error %v", names, err)
	}
	if _, err := aggregate.ReadTunings(t.Context(), []result.Output{o}, method.Builtin()); err != nil {
		t.Error(err)
	}
}

// TestManyResults reads more results than are read at once, and ends the reading early.
func TestManyResults(t *testing.T) {
	t.Parallel()
	var all []item.Result
	for i := range 600 {
		all = append(all, reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("image%d", i), 0))
	}
	o := output(t, all...)
	for _, limit := range []int{3, 600} {
		n := 0
		for _, err := range result.Results(t.Context(), []result.Output{o}) {
			reporttest.Must(t, err)
			if n++; n == limit {
				break
			}
		}
		if n != limit {
			t.Errorf("read %d results, want %d", n, limit)
		}
	}
	if names, err := read(t, &result.Filter{}, o); err != nil || len(names) != 600 {
		t.Errorf("%d results, error %v", len(names), err)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	results := reporttest.SweepResults(t)
	results[0].Item.SigmaEstimated = true
	o := output(t, results...)
	for _, tt := range []struct {
		where []string
		n     int
	}{
		{[]string{"sigma=auto"}, 1}, {[]string{"sigma=0.05,auto"}, 13},
		{nil, 20}, {[]string{"task=super_resolution"}, 8}, {[]string{"factor=2.0"}, 4}, {[]string{"gamma0=8,9"}, 10},
		{[]string{"sigma=0.05", "image=a"}, 6}, {[]string{"image=[ab]", "gamma0=10", "task=gaussian_deblur"}, 6},
		{[]string{"prior=abab"}, 20}, {[]string{"prior=ba"}, 0}, {[]string{"size=128x128", "run=0", "outcome=done", "seed=7"}, 20},
	} {
		f, err := result.ParseFilter(tt.where)
		reporttest.Must(t, err)
		if got, err := read(t, f, o); err != nil || len(got) != tt.n {
			t.Errorf("%v selects %d results (%v), want %d", tt.where, len(got), err, tt.n)
		}
	}
	for _, where := range []string{"task", "=x", "task=", "image=[a"} {
		if _, err := result.ParseFilter([]string{where}); !errors.Is(err, result.ErrFilter) {
			t.Errorf("%q: error %v, want ErrFilter", where, err)
		}
	}
	f, err := result.ParseFilter([]string{"gamma=8"})
	reporttest.Must(t, err)
	if _, err := read(t, f, o); !errors.Is(err, result.ErrFilter) || !strings.Contains(err.Error(), "gamma") {
		t.Errorf("a property that no result has: error %v", err)
	}
}

// TestFolderIsComplete writes a report over two outputs to a directory of its own.
func TestFolderIsComplete(t *testing.T) {
	t.Parallel()
	first, second := reporttest.NewMemory(), reporttest.NewMemory()
	var outputs []result.Output
	for i, store := range []*reporttest.Memory{first, second} {
		r := reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("image%d", i), 0, reporttest.Scored(25, 20, 0.5, 0))
		reporttest.Illustrate(t, store, &r, i)
		data, err := json.Marshal(r)
		reporttest.Must(t, err)
		store.Files[item.Key(r.Item.ID, item.FileResult)] = data
		outputs = append(outputs, result.Output{Address: fmt.Sprintf("out%d", i), Store: store})
	}
	to := reporttest.NewMemory()
	s, err := Write(t.Context(), result.Folder{Outputs: outputs, Files: to}, Campaign{Outputs: []string{"out0", "out1"}}, result.Results(t.Context(), outputs))
	if err != nil || s.Done != 2 {
		t.Fatalf("%+v, error %v", s, err)
	}
	index := string(to.Files[KeyPage])
	pictures := 0
	items := pageItems(t, index)
	for row, id := range items.ID {
		for bit, file := range []string{item.FileTruth, item.FileMeasurement, item.FileRestored, item.FileTrace} {
			if items.Pictures[row]&(1<<bit) == 0 {
				continue
			}
			pictures++
			if to.Files[item.Key(id, file)] == nil {
				t.Errorf("the page shows %s of %s, which is not in the folder", file, id)
			}
		}
	}
	if pictures != 6 || !strings.Contains(index, "out0, out1") || strings.Contains(index, ">Seed<") {
		t.Errorf("%d pictures, want 6", pictures)
	}
}

package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

// measured returns results of three rounds at batch 1 and 4: the second round ran on a busy machine.
func measured() results {
	light, heavy := operator.SuperResolution, operator.PhaseRetrieval
	settings := []setting{{light, 1}, {heavy, 1}, {light, 4}, {heavy, 4}}
	of := func(timings [4][3]float64) round {
		out := round{}
		for i, t := range timings {
			out[settings[i]] = timing{network: t[0], campaign: t[1], solver: t[1] - 1, float32: t[2], provider: "openvino", precision: onnxruntime.BF16}
		}
		return out
	}
	return results{settings: settings, rounds: []round{
		of([4][3]float64{{36, 40, 110}, {36, 48, 0}, {133, 140, 440}, {133, 160, 0}}),
		of([4][3]float64{{80, 100, 220}, {80, 100, 0}, {300, 400, 990}, {300, 400, 0}}),
		of([4][3]float64{{37, 40, 110}, {36, 50, 0}, {140, 140, 440}, {133, 165, 0}}),
	}}
}

// TestBenchSummary: shares are medians over rounds.
func TestBenchSummary(t *testing.T) {
	t.Parallel()
	r := measured()
	// Light: 0.90 and 0.95; heavy: 0.75 and 0.81.
	const last = " provider=openvino precision=bfloat16 ms_per_step=40.0 rounds=3 of=5"
	if line, want := r.summary(5), "share_light=0.90 share_heavy=0.75"+last; line != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	r.settings = r.settings[:1]
	if line, want := r.summary(5), "share_light=0.90 share_heavy=skipped"+last; line != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}

func TestBenchTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	measured().print(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, part := range []string{
		"super_resolution 1 37.00 40.00 0.900 0.800..0.925 39.00 110.00", "phase_retrieval 4 133.00 165.00 0.806 0.750..0.831 164.00 0.00",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, out.String())
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sample []float64
		want   spread
	}{{[]float64{3, 1, 2}, spread{2, 1, 3}}, {[]float64{5}, spread{5, 5, 5}}, {[]float64{4, 1, 3, 2}, spread{2.5, 1, 4}}} {
		before := slices.Clone(test.sample)
		if got := spreadOf(test.sample); got != test.want || !slices.Equal(test.sample, before) {
			t.Errorf("%v: got %v, want %v", before, got, test.want)
		}
	}
}

// TestPhotographsAreDistinct: a campaign restores equal photographs once, which would shorten the measured time.
func TestPhotographsAreDistinct(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), photographs)
	data, err := raster.EncodePNG(raster.New(3, 2, 2))
	if err == nil {
		err = os.WriteFile(filepath.Join(from, "one.png"), data, 0o644)
	}
	if err == nil {
		err = benchOptions{images: from, items: 1000}.writePhotographs(to)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(to)
	if err != nil || len(files) != 1000 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	seen := make(map[string]string)
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(to, f.Name()))
		if other := seen[string(data)]; err != nil || other != "" {
			t.Fatalf("%s equals %s, %v", f.Name(), other, err)
		}
		seen[string(data)] = f.Name()
	}
}

// TestBenchMeasures: a bench of two rounds measures every setting in each, the solver of the first task, and the forms of the network.
func TestBenchMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("runs campaigns")
	}
	lib, err := install.Locate(install.LocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // for the choice of forms
	var out, errs bytes.Buffer
	cmd := NewCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs([]string{"--images", "../../../examples/images", "--task", "super_resolution,phase_retrieval", "--batch", "1,2", "--size", "64",
		"--steps", "2", "--items", "2", "--rounds", "2", "--device", "cpu", "--precision", "float32", "--solver", "--forms", "--onnxruntime", lib.Path})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "share_light=") || !strings.Contains(last, "provider=cpu precision=float32 ms_per_step=") {
		t.Errorf("last line %q", last)
	}
	const forms = 1 + 2*3 // of each batch size
	for i, line := range lines[:min(forms, len(lines))] {
		if left := strings.Contains(line, "NhwcConv"); left != (i == 3 || i == 6) {
			t.Errorf("line %q", line)
		}
	}
	lines = lines[min(forms, len(lines)):]
	if n := len(lines); n != 1+4+1 || !strings.HasSuffix(lines[n-1], " rounds=2 of=2") { // head, campaigns, summary
		t.Fatalf("%d lines:\n%s", n, out.String())
	}
	for i, measured := range []bool{true, false, true, false} {
		if columns := strings.Fields(lines[1+i]); len(columns) != 8 || (columns[6] != "0.00") != measured || columns[6] != "0.00" && columns[7] == "0.00" {
			t.Errorf("line %q", lines[1+i])
		}
	}
}

// TestBenchInterrupted: a bench that is interrupted in its second round prints the results of the first, and ends with the error.
func TestBenchInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("runs campaigns")
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			// A round restores two photographs for two tasks.
			if found, _ := filepath.Glob(filepath.Join(temporary, "ddiff-bench-*", "out", "items", "*", "result.json")); len(found) > 4 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var out bytes.Buffer
	cmd := NewCommand()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--images", "../../../examples/images", "--task", "super_resolution,hdr", "--batch", "1", "--size", "32",
		"--steps", "20", "--items", "2", "--rounds", "3", "--device", "cpu", "--precision", "float32"})
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), " rounds=1 of=3\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

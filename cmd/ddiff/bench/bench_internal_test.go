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

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
)

// fakeTorch writes an interpreter that answers like ddiff_torch.bench: compiled variants fail at batch 4.
func fakeTorch(t *testing.T) benchOptions {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
echo "$*" > arguments
echo '{"torch": "9.9", "variants": ["float32", "float32+channels_last", "bfloat16+channels_last", "float32+compiled"]}'
while read -r line; do
	case $line in
	*compiled*'"batch":4'*) echo '{"error": "no compiler"}' ;;
	*channels_last*) echo '{"ms_per_step": 20.5}' ;;
	*broken*) echo 'Traceback' ;;
	*) echo '{"ms_per_step": 30}' ;;
	esac
done
`
	path := filepath.Join(dir, "python")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return benchOptions{torch: path, tools: dir, size: 64, run: campaign.Options{ComputeOptions: cli.ComputeOptions{Threads: 2}}}
}

func TestTorchProcess(t *testing.T) {
	t.Parallel()
	o := fakeTorch(t)
	p, err := o.startTorch(t.Context(), t.TempDir(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := p.prepare([]int{1, 4}, "hdr")
	want := []setting{
		{"float32", 1}, {"float32+channels_last", 1}, {"bfloat16+channels_last", 1}, {"float32+compiled", 1},
		{"float32", 4}, {"float32+channels_last", 4}, {"bfloat16+channels_last", 4},
	}
	if err != nil || !slices.Equal(run, want) || !slices.Equal(p.skipped, []string{"float32+compiled, batch 4: no compiler"}) {
		t.Errorf("variants %v, skipped %q, %v", run, p.skipped, err)
	}
	if ms, err := p.step(torchRequest{"float32+channels_last", "hdr", 1, 5}); err != nil || ms != 20.5 {
		t.Errorf("step: %g, %v", ms, err)
	}
	if _, err := p.step(torchRequest{"broken", "hdr", 1, 5}); err == nil || !strings.Contains(err.Error(), "Traceback") {
		t.Errorf("a wrong answer: %v", err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	arguments, err := os.ReadFile(filepath.Join(o.tools, "arguments"))
	if err != nil || !strings.Contains(string(arguments), "--threads 2 --size 64") {
		t.Errorf("arguments %q, %v", arguments, err)
	}
	o.torch = "/bin/false"
	if _, err := o.startTorch(t.Context(), t.TempDir(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "the process ended") {
		t.Errorf("an interpreter without torch: %v", err)
	}
}

// measured returns results of three rounds at batch 1 and 4: the second round ran on a busy machine.
func measured() results {
	light, heavy := operator.SuperResolution, operator.PhaseRetrieval
	settings := []setting{{light, 1}, {heavy, 1}, {light, 4}, {heavy, 4}}
	variants := []setting{{"float32", 1}, {"bfloat16+channels_last", 1}, {"float32", 4}, {"float32+compiled", 4}, {"bfloat16+channels_last", 4}}
	of := func(timings [4][3]float64, torch [5]float64) round {
		out := round{timings: map[setting]timing{}, torch: map[setting]float64{}}
		for i, t := range timings {
			out.timings[settings[i]] = timing{network: t[0], campaign: t[1], solver: t[1] - 1, float32: t[2], provider: "openvino", precision: onnxruntime.BF16}
		}
		for i, ms := range torch {
			out.torch[variants[i]] = ms
		}
		return out
	}
	return results{
		task: light, settings: settings, variants: variants, torch: "9.9",
		rounds: []round{
			of([4][3]float64{{36, 40, 110}, {36, 48, 0}, {133, 140, 440}, {133, 160, 0}}, [5]float64{165, 78, 700, 616, 208.5}),
			of([4][3]float64{{80, 100, 220}, {80, 100, 0}, {300, 400, 990}, {300, 400, 0}}, [5]float64{330, 148.5, 1400, 1386, 798}),
			of([4][3]float64{{37, 40, 110}, {36, 50, 0}, {140, 140, 440}, {133, 165, 0}}, [5]float64{165, 97.5, 700, 660, 208.5}),
		},
	}
}

// TestBenchSummary: shares and ratios are medians over rounds; a busy round changes both sides of its ratio.
func TestBenchSummary(t *testing.T) {
	t.Parallel()
	r := measured()
	// Light: 0.90 and 0.95; heavy: 0.75 and 0.81. PyTorch: 2.00 and 1.50; in float32 1.50 and 1.40.
	const last = " provider=openvino precision=bfloat16 ms_per_step=40.0 rounds=3 of=5"
	if line, want := r.summary(5), "share_light=0.90 share_heavy=0.75 vs_torch=1.50 vs_torch_float32=1.40"+last; line != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	r.variants, r.settings = nil, []setting{{operator.SuperResolution, 1}}
	if line, want := r.summary(5), "share_light=0.90 share_heavy=skipped vs_torch=skipped vs_torch_float32=skipped"+last; line != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}

func TestBenchTables(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	measured().print(&out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, part := range []string{
		"super_resolution 1 37.00 40.00 0.900 0.800..0.925", "phase_retrieval 4 133.00 165.00 0.806 0.750..0.831",
		"PyTorch 9.9, super_resolution", "ddiff bfloat16 1 39.00 ddiff float32 1 110.00 ddiff bfloat16 4 139.00", "bfloat16+channels_last 1 97.50 2.00 1.50..2.50",
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
	}{{[]float64{3, 1, 2}, spread{2, 1, 3}}, {[]float64{5}, spread{5, 5, 5}}, {[]float64{4, 1, 3, 2}, spread{2, 1, 4}}} {
		before := slices.Clone(test.sample)
		if got := spreadOf(test.sample); got != test.want || !slices.Equal(test.sample, before) {
			t.Errorf("%v: got %v, want %v", before, got, test.want)
		}
	}
}

// TestBenchMeasures: a bench of two rounds measures every setting in each, beside PyTorch.
func TestBenchMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("runs campaigns")
	}
	o := fakeTorch(t)
	var out, errs bytes.Buffer
	cmd := NewCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs([]string{"--images", "../../../examples/images", "--task", "super_resolution,phase_retrieval", "--batch", "1,2", "--size", "64",
		"--steps", "2", "--items", "2", "--rounds", "2", "--device", "cpu", "--precision", "fp32", "--torch", o.torch, "--tools", o.tools})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "share_light=") || !strings.Contains(last, "provider=cpu precision=float32 ms_per_step=") {
		t.Errorf("last line %q", last)
	}
	if n := len(lines); n != 1+4+2+2+8+1 || !strings.HasSuffix(lines[n-1], " rounds=2 of=2") { // head, campaigns, heads, our solver, variants, summary
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	// A limit that the first round exceeds ends the bench after it, and says so.
	cmd, out = NewCommand(), bytes.Buffer{}
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--images", "../../../examples/images", "--task", "super_resolution", "--batch", "1", "--size", "64",
		"--steps", "2", "--items", "1", "--rounds", "2", "--time", "1ms", "--device", "cpu", "--precision", "fp32"})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.HasSuffix(out.String(), " rounds=1 of=2\n") {
		t.Errorf("%v\n%s", err, out.String())
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
		"--steps", "20", "--items", "2", "--rounds", "3", "--device", "cpu", "--precision", "fp32"})
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), " rounds=1 of=3\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

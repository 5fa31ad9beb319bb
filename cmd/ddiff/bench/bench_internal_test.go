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
	run, err := p.prepare([]int{1, 4}, "hdr", time.Hour)
	if err != nil || len(run[1]) != 4 || !slices.Equal(run[4], []string{"float32", "float32+channels_last", "bfloat16+channels_last"}) {
		t.Errorf("variants %v, %v", run, err)
	}
	if !slices.Equal(p.skipped, []string{"float32+compiled, batch 4: no compiler"}) {
		t.Errorf("skipped %q", p.skipped)
	}
	p.skipped = nil
	if run, err = p.prepare([]int{1}, "hdr", 0); err != nil || len(run[1]) != 3 || len(p.skipped) != 1 {
		t.Errorf("without time to compile: %v, %q, %v", run, p.skipped, err)
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
func measured() benchResults {
	light, heavy := operator.SuperResolution, operator.PhaseRetrieval
	of := func(network, campaign, float32s float64) timing {
		return timing{network: network, campaign: campaign, solver: campaign - 1, float32: float32s, provider: "openvino", precision: onnxruntime.BF16}
	}
	return benchResults{
		settings: []setting{{light, 1}, {heavy, 1}, {light, 4}, {heavy, 4}},
		timings: map[setting][]timing{
			{light, 1}: {of(36, 40, 110), of(80, 100, 220), of(37, 40, 110)},
			{heavy, 1}: {of(36, 48, 0), of(80, 100, 0), of(36, 50, 0)},
			{light, 4}: {of(133, 140, 440), of(300, 400, 990), of(140, 140, 440)},
			{heavy, 4}: {of(133, 160, 0), of(300, 400, 0), of(133, 165, 0)},
		},
		variants: []setting{{"float32", 1}, {"bfloat16+channels_last", 1}, {"float32", 4}, {"float32+compiled", 4}, {"bfloat16+channels_last", 4}},
		torch: map[setting][]float64{
			{"float32", 1}:                {165, 330, 165},
			{"bfloat16+channels_last", 1}: {78, 148.5, 97.5},
			{"float32", 4}:                {700, 1400, 700},
			{"float32+compiled", 4}:       {616, 1386, 660},
			{"bfloat16+channels_last", 4}: {208.5, 798, 208.5},
		},
	}
}

// TestBenchSummary: shares and ratios are medians over rounds; a busy round changes both sides of its ratio.
func TestBenchSummary(t *testing.T) {
	t.Parallel()
	o := benchOptions{tasks: []string{operator.SuperResolution, operator.PhaseRetrieval}, rounds: 3}
	r := measured()
	for torch, want := range map[bool]string{
		// Light: 0.90 and 0.95; heavy: 0.75 and 0.81. PyTorch: 2.00 and 1.50; in float32 1.50 and 1.40.
		true:  "share_light=0.90 share_heavy=0.75 vs_torch=1.50 vs_torch_float32=1.40 provider=openvino precision=bfloat16 ms_per_step=40.0 rounds=3 of=3",
		false: "share_light=0.90 share_heavy=0.75 vs_torch=skipped vs_torch_float32=skipped provider=openvino precision=bfloat16 ms_per_step=40.0 rounds=3 of=3",
	} {
		if line, err := o.summary(r, torch); err != nil || line != want {
			t.Errorf("got  %s, %v\nwant %s", line, err, want)
		}
	}
	r.settings = []setting{{operator.HDR, 1}}
	r.timings[r.settings[0]] = []timing{{network: 9, campaign: 10, provider: "cpu", precision: onnxruntime.FP32}}
	if line, err := o.summary(r, false); err != nil || !strings.HasPrefix(line, "share_light=0.90 share_heavy=skipped ") {
		t.Errorf("without a heavy task: %s, %v", line, err)
	}
	r.variants = nil
	if line, err := o.summary(r, true); err == nil {
		t.Errorf("without variants: %s", line)
	}
}

func TestBenchTables(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := measured()
	r.printCampaigns(&out)
	r.printTorch(operator.SuperResolution, &torchProcess{hello: torchHello{Torch: "9.9"}, skipped: []string{"x: no compiler"}}, &out)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, part := range []string{
		"super_resolution 1 37.00 40.00 0.900 0.800..0.925", "phase_retrieval 4 133.00 165.00 0.806 0.750..0.831",
		"PyTorch 9.9, super_resolution", "ddiff bfloat16 1 39.00 ddiff float32 1 110.00 ddiff bfloat16 4 139.00", "bfloat16+channels_last 1 97.50 2.00 1.50..2.50", "skipped: x: no compiler",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, out.String())
		}
	}
}

// The first round always runs; another one only if it would end within the limit, should it take as long as the longest.
func TestBenchLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit            time.Duration
		round            int
		elapsed, longest time.Duration
		want             bool
	}{
		{0, 1, time.Hour, time.Hour, false},
		{time.Minute, 0, time.Hour, 0, false},
		{time.Minute, 1, 40 * time.Second, 20 * time.Second, false},
		{time.Minute, 1, 40 * time.Second, 21 * time.Second, true},
		{time.Minute, 2, 61 * time.Second, 0, true},
	} {
		if got := (benchOptions{limit: test.limit}).over(test.round, test.elapsed, test.longest); got != test.want {
			t.Errorf("%+v: %t", test, got)
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
	if n := len(lines); n != 1+4+2+2+8+1 { // head, campaigns, heads, our solver, variants, summary
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

package testbed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"ddiff/manifest"
	"ddiff/restore/prior"
	"ddiff/restore/prior/haar"
)

// costOptions are the flags of cost.
type costOptions struct {
	images, program, task string
	size, steps, threads  int
	batches               []int
	rounds                int
	stdout                io.Writer
}

// costCounted is the number of measured batches per campaign. One batch before them is not counted: a session's first calls are
// slower.
const costCounted = 2

// costMode is a row: a method with its settings.
type costMode struct {
	name   string
	latent bool
	args   []string
}

// costModes begin with the reference of the ratios. The settings do not change the cost.
func costModes() []costMode {
	return []costMode{
		{name: "ddiff", args: []string{"--method", "ddiff", "--solver", "gamma0=8"}},
		{name: "pixel_dc", latent: true, args: []string{"--method", "latent_ddiff", "--solver", "gamma0=8", "--solver", "mode=pixel_dc"}},
		{name: "latent_dc", latent: true, args: []string{"--method", "latent_ddiff", "--solver", "gamma0=8", "--solver", "mode=latent_dc"}},
	}
}

// cost is the second command behind `make bench-full`; TestCost runs a small form. It measures a step of both modes of latent_ddiff
// beside one of ddiff: solver time of a batch, and peak memory of a process that runs nothing else. The latent prior is the Haar
// transform around the bundled prior, whose encoder and decoder cost almost nothing.
//
// Each measurement is a process of its own. The modes alternate, because the machine's speed drifts, and the ratio to ddiff is that of
// the same round. It prints medians over the rounds, with the lowest and highest value for times. The last line is
//
//	pixel_dc_b1=RATIO pixel_dc_b1_mib=N latent_dc_b1=RATIO latent_dc_b1_mib=N ...
func cost(ctx context.Context, args []string) error {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return err
	}
	o := costOptions{stdout: os.Stdout}
	flags := flag.NewFlagSet("cost", flag.ExitOnError)
	flags.StringVar(&o.images, "images", filepath.Join(root, "examples", "images"), "photographs")
	flags.StringVar(&o.program, "program", filepath.Join(root, "bin", "ddiff"), "the ddiff program")
	flags.StringVar(&o.task, "task", "gaussian_deblur", "task")
	flags.IntVar(&o.size, "size", 256, "working size in pixels")
	flags.IntVar(&o.steps, "steps", 30, "solver steps per image")
	flags.IntVar(&o.threads, "threads", 0, "processor threads (0: one per core)")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds; the modes alternate within a round")
	batches := flags.String("batch", "1,4", "batch sizes, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, text := range strings.Split(*batches, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("--batch: %q is not a positive number", text)
		}
		o.batches = append(o.batches, n)
	}
	if o.rounds < 1 {
		return fmt.Errorf("--rounds: %d is less than 1", o.rounds)
	}
	return measureCost(ctx, o)
}

// costOf are the measurements of a mode at a batch size, by round: milliseconds per step of a batch, and MiB.
type costOf struct{ ms, mib []float64 }

func measureCost(ctx context.Context, o costOptions) (err error) {
	dir, err := os.MkdirTemp("", "ddiff-cost-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	pixels, err := prior.Read(prior.Bundled)
	if err != nil {
		return err
	}
	bundle := filepath.Join(dir, "latent")
	if err := haar.Write(bundle, pixels, haar.Config{}); err != nil {
		return err
	}
	fmt.Fprintf(o.stdout, "%-10s %5s %10s %19s %9s %9s\n", "mode", "batch", "ms/step", "lowest..highest", "of ddiff", "peak MiB")
	var last []string
	for _, n := range o.batches {
		costs := map[string]*costOf{}
		for round := range o.rounds {
			for _, m := range costModes() {
				p := prior.Bundled
				if m.latent {
					p = bundle
				}
				ms, mib, err := o.measure(ctx, filepath.Join(dir, fmt.Sprintf("%s-%d-%d", m.name, n, round)), p, m, n)
				if err != nil {
					return fmt.Errorf("measure %s with batch %d: %w", m.name, n, err)
				}
				if costs[m.name] == nil {
					costs[m.name] = &costOf{}
				}
				costs[m.name].ms, costs[m.name].mib = append(costs[m.name].ms, ms), append(costs[m.name].mib, mib)
			}
		}
		for _, m := range costModes() {
			c, ratios := costs[m.name], []float64(nil)
			for i, ms := range c.ms {
				ratios = append(ratios, ms/costs["ddiff"].ms[i])
			}
			ratio, mib := middle(ratios), middle(c.mib)
			fmt.Fprintf(o.stdout, "%-10s %5d %10.2f %19s %9.3f %9.0f\n", m.name, n, middle(c.ms),
				fmt.Sprintf("%.2f..%.2f", slices.Min(c.ms), slices.Max(c.ms)), ratio, mib)
			if m.latent {
				last = append(last, fmt.Sprintf("%s_b%d=%.2f %s_b%d_mib=%.0f", m.name, n, ratio, m.name, n, mib))
			}
		}
	}
	fmt.Fprintln(o.stdout, strings.Join(last, " "))
	return nil
}

// measure runs a campaign in a process and returns its milliseconds per step of a batch and the peak memory of the process in MiB.
func (o costOptions) measure(ctx context.Context, out, model string, m costMode, n int) (ms, mib float64, err error) {
	photos, err := filepath.Glob(filepath.Join(o.images, "*.png"))
	if err != nil || len(photos) == 0 {
		return 0, 0, fmt.Errorf("--images: %s contains no PNG; name a directory of photographs", o.images)
	}
	// More items than photographs are runs with other noise.
	items := n * (1 + costCounted)
	runs := (items + len(photos) - 1) / len(photos)
	args := append([]string{"run", o.images, "--quiet", "--task", o.task, "--size", strconv.Itoa(o.size), "--fit", string(manifest.FitResize),
		"--steps", strconv.Itoa(o.steps), "--batch", strconv.Itoa(n), "--limit", strconv.Itoa(min(items, len(photos))), "--runs", strconv.Itoa(runs),
		"--threads", strconv.Itoa(o.threads), "--device", "cpu", "--prior", model, "--out", out}, m.args...)
	run := exec.CommandContext(ctx, o.program, args...)
	run.Stdout, run.Stderr = io.Discard, os.Stderr
	if err := run.Run(); err != nil {
		return 0, 0, fmt.Errorf("run ddiff: %w", err)
	}
	// Maxrss includes the memory of this process before exec, which is smaller.
	usage, ok := run.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, 0, errors.New("run ddiff: the system does not report its memory")
	}
	results, err := Results(out)
	if err != nil {
		return 0, 0, err
	}
	var full []manifest.Result
	for _, r := range results {
		if r.Batch == n {
			full = append(full, r)
		}
	}
	if len(full) <= n {
		return 0, 0, fmt.Errorf("%d of %d items ran in batches of %d, want more than %d", len(full), len(results), n, n)
	}
	slices.SortFunc(full, func(a, b manifest.Result) int { return a.Finished.Compare(b.Finished) })
	var steps []float64
	for _, r := range full[n:] { // Seconds is the item's share of its batch
		steps = append(steps, r.Seconds*1000*float64(n)/float64(o.steps))
	}
	return middle(steps), float64(usage.Maxrss) / 1024, nil
}

package testbed

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// ablationOptions are the flags of ablation.
type ablationOptions struct {
	images, out, program string
	size, steps, limit   int
	threads              int
	tasks                []string
	gamma0               []string
	knobs                int
	stdout               io.Writer
}

// ablationMethods are the rows of the paper's Table 2.
func ablationMethods() []string {
	return []string{"ddiff", "ddiff_hqs", "diff_pnp_admm", "diff_pnp_hqs"}
}

// ablationTasks are the paper's eight tasks.
func ablationTasks() []string {
	return []string{
		"super_resolution", "inpaint_box", "inpaint_random", "gaussian_deblur",
		"motion_deblur", "phase_retrieval", "nonlinear_deblur", "hdr",
	}
}

// ablation is the command behind `make ablation`; TestAblation runs a small form. It compares DDiff with its variants, each
// with settings tuned for it on other images, at equal cost.
//
// One campaign solves a grid of settings for each task and method: each value of gamma0, for DDiff and DDiff-HQS with three
// rules of the noise (full; ddpm until t0 = 300; none, which is t0 = 999), and for the variants without noise with three values of b. Every method has the
// same number of cells, and every cell the same number of network evaluations, images, measurements and noise draws.
//
// Each photograph is then a test image once: every method gets the cell with the highest mean PSNR on the other photographs,
// and its PSNR on this one counts. A task is in order if the means of these PSNR order the four methods as the paper's
// Table 2 (examples/paper/ablation.published.csv) does for this task, from the first to the last place.
//
// The output is a Markdown table, with 95 % intervals over the photographs (Student's t), paired for the differences, and the
// PSNR with the settings that were chosen for DDiff: the comparison without tuning. The last line is
//
//	tasks_in_order=N of=8
func ablation(ctx context.Context, args []string) error {
	o := ablationOptions{stdout: os.Stdout}
	root, err := ModuleRoot(ctx)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("ablation", flag.ExitOnError)
	flags.StringVar(&o.images, "images", filepath.Join(root, "examples", "images"), "photographs")
	flags.StringVar(&o.out, "out", filepath.Join(root, "out", "ablation"), "directory for the results; a rerun resumes")
	flags.StringVar(&o.program, "program", filepath.Join(root, "bin", "ddiff"), "the ddiff program")
	flags.IntVar(&o.size, "size", 64, "working size in pixels")
	flags.IntVar(&o.steps, "steps", 50, "network evaluations per image")
	flags.IntVar(&o.limit, "limit", 0, "read only the first photographs (0: all)")
	flags.IntVar(&o.threads, "threads", 0, "processor threads (0: one per core)")
	flags.IntVar(&o.knobs, "knobs", 2, "1 tunes gamma0 alone, 2 also the rule of the noise or b")
	gamma0 := flags.String("gamma0", "3,8,20,50,125,300", "grid of gamma0, ascending")
	tasks := flags.String("tasks", strings.Join(ablationTasks(), ","), "tasks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.gamma0, o.tasks = strings.Split(*gamma0, ","), strings.Split(*tasks, ",")
	return runAblation(ctx, root, o)
}

func runAblation(ctx context.Context, root string, o ablationOptions) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	file := filepath.Join(o.out, "ablation.yaml")
	if err := os.WriteFile(file, []byte(o.campaign()), 0o644); err != nil {
		return err
	}
	run := resumable(ctx, o.program, "run", file, "--out", o.out, "--threads", strconv.Itoa(o.threads))
	run.Stdout, run.Stderr = io.Discard, os.Stderr
	if err := run.Run(); err != nil {
		return fmt.Errorf("run %s: %w", file, err)
	}
	var rows strings.Builder
	report := exec.CommandContext(ctx, o.program, "report", o.out, "--format", "csv", "--where", "steps="+strconv.Itoa(o.steps))
	report.Stdout, report.Stderr = &rows, os.Stderr
	if err := report.Run(); err != nil {
		return fmt.Errorf("report on %s: %w", o.out, err)
	}
	scores, err := o.read(strings.NewReader(rows.String()))
	if err != nil {
		return fmt.Errorf("read results of %s: %w", o.out, err)
	}
	paper, err := os.Open(filepath.Join(root, "examples", "paper", "ablation.published.csv"))
	if err != nil {
		return err
	}
	defer paper.Close() // opened for reading
	places, err := publishedPlaces(paper)
	if err != nil {
		return err
	}
	return o.write(scores, places)
}

// knob is one value of the second setting: assignments of solver parameters.
type knob []string

// knobsOf returns the values of a method's second setting. With one knob they are the paper's rule of the noise for the task
// (appendix "Hyperparameter Choices"), with the t0 of few steps, and b = 1.
func (o ablationOptions) knobsOf(task, method string) []knob {
	noisy := method == "ddiff" || method == "ddiff_hqs"
	full, ddpm, none := knob{"b=1", "sigma_rule=full", "t0=1"}, knob{"b=1", "sigma_rule=ddpm", "t0=300"}, knob{"b=1", "sigma_rule=ddpm", "t0=999"}
	switch {
	case o.knobs == 1 && !noisy:
		return []knob{{"b=1"}}
	case o.knobs == 1 && (strings.HasPrefix(task, "inpaint") || task == "super_resolution" || task == "phase_retrieval"):
		return []knob{full}
	case o.knobs == 1:
		return []knob{ddpm}
	case noisy:
		return []knob{full, ddpm, none}
	}
	return []knob{{"b=0.3"}, {"b=1"}, {"b=3"}}
}

// cells returns the grid of a method: for each knob the values of gamma0.
func (o ablationOptions) cells(task, method string) []knob {
	var out []knob
	for _, k := range o.knobsOf(task, method) {
		for _, g := range o.gamma0 {
			out = append(out, append(knob{"gamma0=" + g}, k...))
		}
	}
	return out
}

// campaign is the campaign file of the grid.
func (o ablationOptions) campaign() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: ablation\ndataset: {path: %q, size: %d, fit: resize, limit: %d}\n", o.images, o.size, o.limit)
	fmt.Fprintf(&b, "methods: [%s]\nsteps: %d\nsigma: 0.05\nseed: 1\ntasks:\n", strings.Join(ablationMethods(), ", "), o.steps)
	for _, task := range o.tasks {
		for _, pair := range [][]string{ablationMethods()[:2], ablationMethods()[2:]} {
			for _, k := range o.knobsOf(task, pair[0]) {
				fmt.Fprintf(&b, "  - {name: %s, methods: [%s], solver: {gamma0: [%s], %s}}\n", task, strings.Join(pair, ", "),
					strings.Join(o.gamma0, ", "), strings.ReplaceAll(strings.Join(k, ", "), "=", ": "))
			}
		}
	}
	return b.String()
}

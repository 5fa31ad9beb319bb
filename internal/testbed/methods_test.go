package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gonum.org/v1/gonum/stat"

	"ddiff/manifest"
)

// methodsOptions are the settings of methods.
type methodsOptions struct {
	campaigns    []string // files: at equal cost, with the published steps, and for the times
	out, program string
	args         []string // of ddiff run
	stdout       io.Writer
}

// methods is the command behind `make methods`. It runs the campaigns examples/methods/equal_cost.yaml, published.yaml and time.yaml.
// It prints one report of the first two and the table of writeTimes. All arguments are those of ddiff run, for all campaigns; --out
// is the directory for the outputs, by default out/methods. A rerun resumes, after an interruption from the checkpoints.
//
// The last line counts the methods and tasks of the campaign at equal cost, and the tasks in which ddiff has the highest mean PSNR
// of all methods, or a mean whose difference to the highest has a 95 % interval (Student's t, paired by image) that contains zero. One image has no interval:
//
//	methods=N tasks=N ddiff_best_or_tied=N failed=N
//
// Items that failed or are dead are counted in failed and end the command with an error, after the report. In this line and in the times,
// their images are left out of the task for all methods of the same campaign, so that means stay comparable; a method other than ddiff that
// restored no image of a task is left out of it. The rows of the report have all images that their method restored.
func methods(ctx context.Context, args []string) error {
	root, err := ModuleRoot(ctx)
	if err != nil {
		return err
	}
	o := methodsOptions{out: filepath.Join(root, "out", "methods"), program: filepath.Join(root, "bin", "ddiff"), stdout: os.Stdout}
	for _, name := range []string{"equal_cost", "published", "time"} {
		o.campaigns = append(o.campaigns, filepath.Join(root, "examples", "methods", name+".yaml"))
	}
	for i := 0; i < len(args); i++ {
		if value, ok := strings.CutPrefix(args[i], "--out="); ok {
			o.out = value
		} else if args[i] == "--out" && i+1 < len(args) {
			i++
			o.out = args[i]
		} else {
			o.args = append(o.args, args[i])
		}
	}
	return runMethods(ctx, o)
}

func runMethods(ctx context.Context, o methodsOptions) error {
	if err := withDDiff(o.args); err != nil {
		return err
	}
	var outputs []string
	var incomplete error
	for _, file := range o.campaigns {
		out := filepath.Join(o.out, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		outputs = append(outputs, out)
		run := resumable(ctx, o.program, append([]string{"run", file, "--out", out}, o.args...)...)
		run.Stdout, run.Stderr = io.Discard, os.Stderr
		switch err := run.Run(); {
		case run.ProcessState != nil && run.ProcessState.ExitCode() == exitIncomplete:
			incomplete = errors.Join(incomplete, fmt.Errorf("run %s: %w", file, err))
		case err != nil:
			return fmt.Errorf("run %s: %w", file, err)
		}
	}
	report := exec.CommandContext(ctx, o.program, append([]string{"report"}, outputs[:2]...)...)
	report.Stdout, report.Stderr = o.stdout, os.Stderr
	if err := report.Run(); err != nil {
		return fmt.Errorf("report on %s: %w", strings.Join(outputs[:2], ", "), err)
	}
	times, err := readResults(outputs[2])
	if err != nil {
		return err
	}
	fmt.Fprintln(o.stdout)
	restoredTimes, _ := restoredByAll(times)
	if err := writeTimes(o.stdout, restoredTimes); err != nil {
		return fmt.Errorf("times of %s: %w", outputs[2], err)
	}
	rows, err := readResults(outputs[0])
	if err != nil {
		return err
	}
	published, err := readResults(outputs[1])
	if err != nil {
		return err
	}
	restored, _ := restoredByAll(rows)
	line, err := methodsLine(restored)
	if err != nil {
		return err
	}
	_, failed := restoredByAll(slices.Concat(rows, published, times))
	if _, err = fmt.Fprintf(o.stdout, "\n%s failed=%d\n", line, failed); err != nil {
		return err
	}
	if failed > 0 || incomplete != nil {
		return errors.Join(fmt.Errorf("%d items failed or are dead; results.csv in the folders below %s has the reasons", failed, o.out), incomplete)
	}
	return nil
}

// exitIncomplete is the exit code of ddiff run if some items failed or are dead.
const exitIncomplete = 3

// restoredByAll returns the rows of results.csv of the images that all methods of a task have restored, and the number of items that failed.
// A method other than ddiff that has restored no image of a task does not count there.
func restoredByAll(rows []map[string]string) (restored []map[string]string, failed int) {
	able, bad := map[[2]string]bool{}, map[[2]string]bool{} // by task and method, by task and image
	done := func(row map[string]string) bool { return row["outcome"] == string(manifest.OutcomeDone) }
	for _, row := range rows {
		if done(row) {
			able[[2]string{row["task"], row["method"]}] = true
		}
	}
	for _, row := range rows {
		if done(row) {
			continue
		}
		failed++
		if row["method"] == "ddiff" || able[[2]string{row["task"], row["method"]}] {
			bad[[2]string{row["task"], row["image"]}] = true
		}
	}
	for _, row := range rows {
		if done(row) && !bad[[2]string{row["task"], row["image"]}] {
			restored = append(restored, row)
		}
	}
	return restored, failed
}

// withDDiff returns an error if the arguments leave out ddiff, with which the report compares the others: after hours there would be none.
func withDDiff(args []string) error {
	for i, arg := range args {
		list, ok := strings.CutPrefix(arg, "--method=")
		if arg == "--method" && i+1 < len(args) {
			list, ok = args[i+1], true
		}
		if ok && !slices.Contains(strings.Split(list, ","), "ddiff") {
			return fmt.Errorf("--method: %s is without ddiff, with which the other methods are compared; add it", list)
		}
	}
	return nil
}

// resumable returns a command of ddiff that stores its checkpoints when ctx ends: it gets one interrupt, and none of the terminal, because
// a second one would end it at once. If this process dies, the kernel ends it in the same way.
func resumable(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Minute
	return cmd
}

// readResults reads results.csv of an output.
func readResults(output string) ([]map[string]string, error) {
	file, err := os.Open(filepath.Join(output, "results.csv"))
	if err != nil {
		return nil, err
	}
	defer file.Close() // opened for reading
	rows, err := readTable(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return rows, nil
}

// methodsLine returns the last line for the rows of results.csv. It returns an error if a method lacks an image of a task.
func methodsLine(rows []map[string]string) (string, error) {
	psnr := map[string]map[string]map[string]float64{} // by task, method and image
	methods := map[string]bool{}
	for _, row := range rows {
		v, err := strconv.ParseFloat(row["psnr"], 64)
		if err != nil {
			return "", fmt.Errorf("%s, %s, %s: %s %s", row["task"], row["method"], row["image"], row["outcome"], row["reason"])
		}
		byMethod := psnr[row["task"]]
		if byMethod == nil {
			byMethod = map[string]map[string]float64{}
			psnr[row["task"]] = byMethod
		}
		if byMethod[row["method"]] == nil {
			byMethod[row["method"]] = map[string]float64{}
		}
		if _, twice := byMethod[row["method"]][row["image"]]; twice {
			return "", fmt.Errorf("%s, %s, %s: two results; the campaign has one number of steps for each task and method", row["task"], row["method"], row["image"])
		}
		byMethod[row["method"]][row["image"]] = v
		methods[row["method"]] = true
	}
	good := 0
	for task, byMethod := range psnr {
		ours := byMethod["ddiff"]
		ahead := map[string][]float64{} // differences to ddiff
		for method, images := range byMethod {
			for image, v := range images {
				base, ok := ours[image]
				if !ok || len(images) != len(ours) {
					return "", fmt.Errorf("%s: %s and ddiff have not restored the same images", task, method)
				}
				ahead[method] = append(ahead[method], v-base)
			}
		}
		best := slices.MaxFunc(slices.Sorted(maps.Keys(ahead)), func(a, b string) int {
			return cmp.Compare(stat.Mean(ahead[a], nil), stat.Mean(ahead[b], nil))
		})
		mean, half := stat.Mean(ahead[best], nil), 0.0
		if len(ours) > 1 {
			_, half = interval(ahead[best])
		}
		if mean <= half {
			good++
		}
	}
	return fmt.Sprintf("methods=%d tasks=%d ddiff_best_or_tied=%d", len(methods), len(psnr), good), nil
}

package testbed

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// reference is the undisturbed run of campaigns, each in one process, below a directory.
type reference struct {
	dir     string
	program string
	plans   plans
}

// output returns the output of a campaign.
func (r reference) output(p plan) string { return filepath.Join(r.dir, p.name, "out") }

// run runs all campaigns one after another.
func (r reference) run(ctx context.Context, say func(format string, args ...any)) error {
	for _, p := range r.plans.all() {
		images, file := filepath.Join(r.dir, p.name, "images"), filepath.Join(r.dir, p.name, "campaign.yaml")
		if err := errors.Join(p.writeImages(images), p.write(file, images)); err != nil {
			return err
		}
		runtime, err := RuntimeVariable()
		if err != nil {
			return err
		}
		begin := time.Now()
		cmd := exec.CommandContext(ctx, r.program, "run", file,
			"--quiet", "--threads", "1", "--batch", "2", "--device", "cpu", "--out", r.output(p))
		cmd.Env = append(Environment(), runtime, "XDG_CACHE_HOME="+filepath.Join(r.dir, "cache"))
		out, err := cmd.Output()
		last := lastLine(string(out))
		if err != nil && !strings.HasPrefix(last, "done=") {
			return fmt.Errorf("run campaign %s undisturbed: %w", p.name, err)
		}
		say("undisturbed run of %s: %s in %.1f s", p.name, last, time.Since(begin).Seconds())
	}
	return nil
}

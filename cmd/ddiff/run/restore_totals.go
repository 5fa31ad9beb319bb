package run

import (
	"encoding/json"
	"fmt"
	"io"

	"ddiff/internal/cli"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// totals are the counts of a command, whose pictures may need several tasks.
type totals struct {
	JSON, quiet    bool
	stdout, stderr io.Writer
	inputs         []*picture     // of all groups
	skips          manifest.Skips // inputs that need no restoration, and other files of folders
	doubtful       manifest.Skips // inputs whose restoration is not written
	began          int            // groups that were planned
	left           int            // pictures that are left as they are

	written, failed, dead, pending, skipped, warned int
}

// fail reports an input without a restored picture, of the task that was to restore it.
func (t *totals) fail(name, task string, err error) {
	t.failed++
	reason := cli.Printable(cli.OneLine(fmt.Errorf("%s: %w", name, err)))
	if t.JSON {
		_ = json.NewEncoder(t.stdout).Encode(restoration{Input: name, Outcome: item.OutcomeFailed, Reason: reason, Task: task})
		return
	}
	fmt.Fprintln(t.stderr, cli.StyleOf(t.stderr).Red("failed:"), reason)
}

// count adds the counts of a group to those of the command.
func (w *pictureWriter) count() {
	t := w.total
	t.began++
	t.written += w.written
	t.failed += w.counts.Failed
	t.dead += w.counts.Dead
	t.pending += w.counts.Pending
	t.skipped += w.skipped
	t.warned += w.warned
}

// summarize prints the counts. Its error has the inputs without a restored picture, unless ran says more.
func (t *totals) summarize(ran error) error {
	if t.JSON {
		if err := json.NewEncoder(t.stdout).Encode(map[string]any{
			"left_out": append(t.skips, t.doubtful...), "done": t.written, "failed": t.failed, "dead": t.dead, "pending": t.pending,
			"skipped": t.skipped + t.left, "warned": t.warned,
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprint(t.stderr, t.doubtful.Report(t.quiet))
		if t.skipped > 0 {
			fmt.Fprintf(t.stderr, "skipped pictures, restored already: %d; --force restores them again\n", t.skipped)
		}
		fmt.Fprintf(t.stdout, "done=%d failed=%d dead=%d skipped=%d warned=%d\n", t.written, t.failed, t.dead, t.skipped+t.left, t.warned)
	}
	if ran == nil && t.failed+t.dead > 0 {
		return fmt.Errorf("%w: %d failed, %d dead", cli.ErrIncomplete, t.failed, t.dead)
	}
	return nil
}

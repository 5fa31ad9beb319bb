package run

import (
	"encoding/json"
	"fmt"
	"io"

	"ddiff/internal/cli"
	"ddiff/manifest"
)

// totals are the counts of a command, whose pictures may need several tasks.
type totals struct {
	JSON           bool
	stdout, stderr io.Writer
	skips          manifest.Skips // inputs that are not restored, and other files of folders
	began          bool           // a group has been planned

	left int // pictures that are left as they are

	written, failed, dead, pending, skipped, warned int
}

// count adds the counts of a group to those of the command.
func (w *pictureWriter) count() {
	t := w.total
	t.began = true
	t.written += w.written
	t.failed += w.counts.Failed + len(w.errs)
	t.dead += w.counts.Dead
	t.pending += w.counts.Pending
	t.skipped += w.skipped
	t.warned += w.warned
}

// summarize prints the counts. Its error has the inputs without a restored picture, unless ran says more.
func (t *totals) summarize(ran error) error {
	if t.skipped > 0 && !t.JSON {
		fmt.Fprintf(t.stderr, "skipped pictures, restored already: %d; --force restores them again\n", t.skipped)
	}
	if t.JSON {
		if err := json.NewEncoder(t.stdout).Encode(map[string]any{
			"left_out": t.skips, "done": t.written, "failed": t.failed, "dead": t.dead, "pending": t.pending, "skipped": t.skipped + t.left, "warned": t.warned,
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(t.stdout, "done=%d failed=%d dead=%d skipped=%d warned=%d\n", t.written, t.failed, t.dead, t.skipped+t.left, t.warned)
	}
	if ran == nil && t.failed+t.dead > 0 {
		return fmt.Errorf("%w: %d failed, %d dead", cli.ErrIncomplete, t.failed, t.dead)
	}
	return nil
}

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"ddiff/internal/restore/photograph"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// Progress reports a run: a status line on a terminal, else plain lines; or one JSON object per finished item. Each
// item that failed or is dead is a line of its own on standard error. Its methods may be called concurrently.
type Progress struct {
	// LeaveWarnings leaves the warnings of items to calls of Warn.
	LeaveWarnings bool
	// Pace learns from the results. Nil: it is not remembered.
	Pace *Pace

	json, quiet bool
	out, err    io.Writer
	terminal    bool
	status      func(line string) // replaces the status line of the terminal
	style       Style

	mu       sync.Mutex
	items    int            // of the campaign, as far as it has been read
	complete bool           // the dataset has been read to its end
	found    int            // items that earlier runs restored
	refused  int            // items that failed before any worker attempted them
	ended    int            // items that a worker of this run settled
	allSteps int            // solver steps of the items to restore
	made     float64        // solver steps of this run, with parts of steps
	warned   int            // warnings of finished items
	skips    manifest.Skips // entries of the dataset that are no rows
	first    float64        // made at began
	began    time.Time      // when made grew first: before, models were compiled
	last     time.Time      // when made grew
	expected time.Time      // end of the run, as foreseen before the first step
	stopped  chan struct{}  // nil before begin
	ticker   sync.WaitGroup
}

// statusEvery is the interval between two updates of the status line.
const statusEvery = 200 * time.Millisecond

// warningLines is the largest number of lines about warnings. results.csv has all.
const warningLines = 20

// NewProgress returns the progress of one run of a command.
func NewProgress(asJSON, quiet bool, stdout, stderr io.Writer) *Progress {
	return &Progress{
		json: asJSON, quiet: quiet, out: stdout, err: stderr, style: StyleOf(stderr),
		terminal: TerminalWidth(stderr) > 0, status: StatusLine(stderr),
	}
}

// silent reports whether only failures are reported.
func (p *Progress) silent() bool { return p.json || p.quiet }

// Begin starts to report, before the dataset is read.
func (p *Progress) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent() || p.stopped != nil {
		return
	}
	stopped := make(chan struct{})
	p.stopped = stopped
	p.ticker.Go(func() { p.tick(stopped) })
}

// Entered reports the number of known items and the solver steps of the items to restore. Complete
// is true once the dataset has been read to its end.
func (p *Progress) Entered(items, steps int, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items, p.allSteps = items, steps
	if !complete || p.complete {
		return
	}
	p.complete = true
	p.clear()
	if !p.json {
		fmt.Fprint(p.err, p.skips.Report(p.quiet))
	}
	if p.silent() {
		return
	}
	noun := "items"
	if p.items == 1 {
		noun = "item"
	}
	fmt.Fprintf(p.err, "%d %s, %d of them are done, %d to do\n", p.items, noun, p.found, p.pending())
}

// pending is the number of items that this run restores; p.mu is locked.
func (p *Progress) pending() int { return p.items - p.found - p.refused }

func (p *Progress) tick(stopped <-chan struct{}) {
	every := LineEvery
	if p.terminal {
		every = statusEvery
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-t.C:
			p.mu.Lock()
			p.show()
			p.mu.Unlock()
		}
	}
}

// show writes the status; p.mu is locked.
func (p *Progress) show() {
	if p.terminal {
		p.status(p.line())
	} else {
		fmt.Fprintln(p.err, p.line())
	}
}

// line is the status as text.
func (p *Progress) line() string {
	resumed := ""
	if p.found > 0 {
		resumed = fmt.Sprintf("%d of %d found  ", p.found, p.items)
	}
	if !p.complete {
		return fmt.Sprintf("reading the dataset: %d items  %s%d restored", p.items, resumed, p.ended)
	}
	line := fmt.Sprintf("%d/%d images  %s", p.ended, p.pending(), resumed)
	if p.made > 0 {
		all := max(p.allSteps, int(math.Ceil(p.made))) // steps repeat when an item is tried again
		line = fmt.Sprintf("%sstep %d of %d", line, int(p.made), all)
	}
	if p.made == p.first {
		if line = strings.TrimRight(line, " "); !p.expected.IsZero() {
			line += fmt.Sprintf("  ETA %v", max(0, time.Until(p.expected)).Round(time.Second))
		}
		return line
	}
	left := max(0, float64(p.allSteps)-p.made) / (p.made - p.first) * float64(p.last.Sub(p.began))
	return fmt.Sprintf("%s  ETA %v", line, max(0, time.Duration(left)-time.Since(p.last)).Round(time.Second))
}

// Expect states how long the run takes from now on, for the time before steps are measured.
func (p *Progress) Expect(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = time.Now().Add(d)
}

// Finished reports an item that reached its final state. Found reports whether an earlier run restored it.
func (p *Progress) Finished(r item.Result, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case found:
		p.found++
	case r.Attempt == 0 && r.Outcome == item.OutcomeFailed:
		p.refused++
	default:
		p.ended++
	}
	again := slices.ContainsFunc(r.Warnings, func(w item.Warning) bool { return w.Code == photograph.WarnChanged }) // its time is that of several restorations
	if p.Pace != nil && !found && !again && r.Outcome == item.OutcomeDone {
		p.Pace.Observe(Work(&r.Item, r.Cost), r.Seconds)
	}
	if p.json {
		// Where the reader of the pipe is gone, the final counts fail and are reported.
		_ = json.NewEncoder(p.out).Encode(r)
		return
	}
	if r.Outcome != item.OutcomeDone {
		p.clear()
		fmt.Fprintln(p.err, p.style.Red(string(r.Outcome)+":"), ItemLine(r))
	}
	if !p.LeaveWarnings && !p.quiet {
		p.warn(fmt.Sprintf("%s (%s)", r.Item.Name, r.Item.Task), r.Warnings)
	}
}

// Warn reports the warnings of a result, the first of all results, also where only failures are reported.
func (p *Progress) Warn(label string, warnings []item.Warning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warn(label, warnings)
}

// Say writes a line, unless only failures are reported.
func (p *Progress) Say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.silent() {
		p.clear()
		fmt.Fprintln(p.err, Printable(line))
	}
}

// warn is Warn; p.mu is locked.
func (p *Progress) warn(label string, warnings []item.Warning) {
	for _, w := range warnings {
		if p.warned++; p.warned > warningLines {
			break
		}
		p.clear()
		fmt.Fprintln(p.err, Printable(fmt.Sprintf("warning: %s: %s", label, w.Text)))
	}
}

// Stepped adds solver steps that were made.
func (p *Progress) Stepped(n int) { p.Advanced(float64(n)) }

// Advanced adds a part of a solver step.
func (p *Progress) Advanced(steps float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made += steps
	p.last = time.Now()
	if p.began.IsZero() {
		p.began, p.first = p.last, p.made
	}
}

// Skipped counts an entry of the dataset that is no row.
func (p *Progress) Skipped(e manifest.Skip) {
	p.mu.Lock()
	p.skips.Add(e)
	p.mu.Unlock()
}

// LeaveOut adds entries that were skipped before the dataset.
func (p *Progress) LeaveOut(skipped manifest.Skips) {
	p.mu.Lock()
	p.skips.Merge(skipped)
	p.mu.Unlock()
}

// Skips returns the entries of the dataset that are no rows, to add to the counts of a run.
func (p *Progress) Skips() manifest.Skips {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(manifest.Skips{}, p.skips...)
}

// clear removes the status line; p.mu is locked.
func (p *Progress) clear() {
	if !p.silent() {
		p.status("")
	}
}

// Stop reports the last state, and stores the pace. A second call has no effect.
func (p *Progress) Stop() {
	p.mu.Lock()
	if p.Pace != nil {
		p.Pace.Store()
	}
	running := p.stopped
	p.stopped = nil
	p.mu.Unlock()
	if running == nil {
		return
	}
	close(running)
	p.ticker.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.complete && p.pending() == 0 {
		return
	}
	p.show()
	if p.terminal {
		fmt.Fprintln(p.err)
	}
}

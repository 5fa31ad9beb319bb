package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"ddiff/coordinator"
	"ddiff/manifest"
)

// progress shows how a run goes on: a bar on a terminal, else plain lines; or one JSON object
// per finished item. Failures are always lines of their own, on standard error.
type progress struct {
	json, quiet, bar bool
	out, err         io.Writer

	mu       sync.Mutex
	total    int // items to do in this run
	ended    int
	allSteps int
	made     int
	files    int // files of the dataset that are no images
	began    time.Time
	running  bool
	done     chan struct{}
}

// The times between two updates of the bar and between two plain lines.
const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

func newProgress(o runOptions, stdout, stderr io.Writer) *progress {
	return &progress{
		json: o.json, quiet: o.quiet, bar: isTerminal(stderr) && !o.json && !o.quiet,
		out: stdout, err: stderr, done: make(chan struct{}),
	}
}

// start begins to show a run with the given counts and steps to make.
func (p *progress) start(n coordinator.Counts, steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.ended, p.allSteps, p.began, p.running = n.Pending, 0, steps, time.Now(), true
	if p.json || p.quiet {
		return
	}
	if p.files > 0 {
		fmt.Fprintf(p.err, "%d files of the dataset are no images\n", p.files)
	}
	fmt.Fprintf(p.err, "%d items, %d of them are done, %d to do\n", n.Items, n.Done, n.Pending)
	if n.Pending > 0 {
		go p.tick()
	}
}

func (p *progress) tick() {
	every := lineEvery
	if p.bar {
		every = barEvery
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-t.C:
			p.mu.Lock()
			if p.running {
				p.show()
			}
			p.mu.Unlock()
		}
	}
}

// show prints the state; p.mu is held.
func (p *progress) show() {
	if p.json || p.quiet {
		return
	}
	rate := float64(p.made) / time.Since(p.began).Seconds()
	eta := "?"
	if rate > 0 {
		left := max(0, p.allSteps-p.made) // steps are made twice when an item is tried again
		eta = (time.Duration(float64(left)/rate) * time.Second).Round(time.Second).String()
	}
	line := fmt.Sprintf("%d/%d images  %.1f steps/s  ETA %s", p.ended, p.total, rate, eta)
	if !p.bar {
		fmt.Fprintln(p.err, line)
		return
	}
	const width = 30
	full := 0
	if p.allSteps > 0 {
		full = min(width, width*p.made/p.allSteps)
	}
	fmt.Fprintf(p.err, "\r\x1b[K[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", width-full), line)
}

// finished is told of every item that has its final state.
func (p *progress) finished(r manifest.Result, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !found && p.running {
		p.ended++
	}
	if p.json {
		// The writer is a pipe or a file; if it is gone the counts cannot be told either.
		_ = json.NewEncoder(p.out).Encode(r)
		return
	}
	if r.Outcome != manifest.OutcomeDone {
		p.clear()
		fmt.Fprintf(p.err, "%s: %s (%s): %s\n", r.Outcome, r.Item.Name, r.Item.Task, r.Reason)
	}
}

// steps is told of solver steps as they are made.
func (p *progress) steps(n int) {
	p.mu.Lock()
	p.made += n
	p.mu.Unlock()
}

// skipped is told of a file that is no image.
func (p *progress) skipped(string) {
	p.mu.Lock()
	p.files++
	p.mu.Unlock()
}

// clear removes the bar; p.mu is held.
func (p *progress) clear() {
	if p.bar {
		fmt.Fprint(p.err, "\r\x1b[K")
	}
}

// stop shows the last state and ends.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		return
	}
	p.running = false
	close(p.done)
	if p.total > 0 {
		p.show()
		if p.bar {
			fmt.Fprintln(p.err)
		}
	}
}

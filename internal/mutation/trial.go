package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// firstBatch is the time of the tests that run first on a mutant, the fastest ones. The time of each further batch is
// batchGrowth times that of the one before. Most mutants need few batches.
const (
	firstBatch  = 500 * time.Millisecond
	batchGrowth = 4
	// likelyTests is the number of tests in the batch of those that have noticed most mutants of a file.
	likelyTests = 2
)

// parallelTests is the number of tests that run at once, of those that permit it: many wait for a server or a clock most of
// their time.
const parallelTests = "8"

// memoryLimit bounds the address space of the tests of a mutant, in KiB: a mutated loop may allocate without end.
const memoryLimit = 12 << 20

// limits bound a run of tests.
type limits struct{ wall, cpu time.Duration }

// A result is the end of a run of tests.
type result struct {
	passed    bool
	late      bool // the run did not end within the wall time
	output    []byte
	wall, cpu time.Duration
}

// failed matches the line of a top-level test that failed.
var failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// try builds a mutant and runs the tests that reach it, the fastest first.
//
// The processor time of the tests is limited to ten times that of the original, plus ten seconds. It does not grow with
// the load of the machine, so a mutant that exceeds it computes without end, and is noticed. The wall time is limited to
// five times the original's plus thirty seconds; a mutant that exceeds it has timed out. A test that failed runs once
// more: only a second failure is a notice, since some tests depend on the load of the machine.
func (w *workspace) try(ctx context.Context, m mutant, tests []test) (o outcome, err error) {
	target := filepath.Join(w.tree(), m.folder, m.file)
	original, err := os.ReadFile(target)
	if err != nil {
		return 0, err
	}
	if err := copyFile(m.source, target, 0o644); err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, os.WriteFile(target, original, 0o644), w.clearTemporary())
	}()
	binary := filepath.Join(w.folder, "mutant.test")
	if valid, err := w.build(ctx, m.folder, binary); err != nil {
		if !valid {
			return unbuilt, nil
		}
		return 0, err
	}
	return w.judge(ctx, m, tests, program{binary: binary})
}

// judge runs the tests that reach a mutant, see batches.
func (w *workspace) judge(ctx context.Context, m mutant, tests []test, p program) (outcome, error) {
	noticedBy := w.noticedBy[m.folder+"/"+m.file]
	if noticedBy == nil {
		noticedBy = map[string]int{}
		w.noticedBy[m.folder+"/"+m.file] = noticedBy
	}
	for _, batch := range batches(m.tests, tests, noticedBy) {
		for len(batch) > 0 {
			r, err := w.runTests(ctx, m.folder, p, batch, "-test.failfast")
			if err != nil {
				return 0, err
			}
			if r.late {
				return timedOut, nil
			}
			if r.passed {
				break
			}
			match := failed.FindSubmatch(r.output)
			if match == nil {
				return noticed, nil // a panic, or the end of the processor time
			}
			again := slices.IndexFunc(batch, func(t test) bool { return t.name == string(match[1]) })
			if again < 0 {
				return noticed, nil
			}
			if r, err = w.runTests(ctx, m.folder, p, batch[again:again+1], "-test.failfast"); err != nil {
				return 0, err
			}
			if !r.passed {
				noticedBy[batch[again].name]++
				return noticed, nil
			}
			batch = slices.Delete(slices.Clone(batch), again, again+1) // the others have not all run
		}
	}
	return survived, nil
}

// tryOnce tries a mutant in a program that has it, or in its own, unless an equal one was tried: gremlins changes a
// binary minus twice.
func (w *workspace) tryOnce(ctx context.Context, m mutant, tests []test, p program) (outcome, error) {
	data, err := os.ReadFile(m.source)
	if err != nil {
		return 0, err
	}
	if o, found := w.tried[string(data)]; found {
		return o, nil
	}
	var o outcome
	if p.active > 0 {
		o, err = w.judge(ctx, m, tests, p)
	} else {
		o, err = w.try(ctx, m, tests)
	}
	if err == nil {
		w.tried[string(data)] = o
	}
	return o, err
}

func (w *workspace) clearTemporary() error {
	if err := os.RemoveAll(w.temporary()); err != nil {
		return err
	}
	return os.MkdirAll(w.temporary(), 0o755)
}

// batches returns the tests of a mutant in batches. The fastest tests go first, then those that have noticed most mutants of
// the file, which are likely to notice this one, then all others, the fastest first.
func batches(indices []int, tests []test, noticedBy map[string]int) [][]test {
	var chosen []test
	for _, i := range indices {
		chosen = append(chosen, tests[i])
	}
	slices.SortStableFunc(chosen, func(a, b test) int { return int(a.wall - b.wall) })
	var out [][]test
	for limit := firstBatch; len(chosen) > 0; limit *= batchGrowth {
		n, sum := 0, time.Duration(0)
		for n < len(chosen) && (n == 0 || sum+chosen[n].wall <= limit) {
			sum += chosen[n].wall
			n++
		}
		out, chosen = append(out, chosen[:n]), slices.Clone(chosen[n:])
		if limit > firstBatch {
			continue
		}
		slices.SortStableFunc(chosen, func(a, b test) int { return noticedBy[b.name] - noticedBy[a.name] })
		n = 0
		for n < min(len(chosen), likelyTests) && noticedBy[chosen[n].name] > 0 {
			n++
		}
		if n > 0 {
			out, chosen = append(out, chosen[:n]), slices.Clone(chosen[n:])
		}
		slices.SortStableFunc(chosen, func(a, b test) int { return int(a.wall - b.wall) })
	}
	return out
}

// runTests runs tests of a package in -short mode.
func (w *workspace) runTests(ctx context.Context, name string, p program, tests []test, flags ...string) (result, error) {
	limit := w.slack
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
		limit.wall += 5 * t.wall
		limit.cpu += 10 * t.cpu
	}
	flags = append(flags, "-test.run=^("+strings.Join(names, "|")+")$", "-test.short", "-test.parallel="+parallelTests)
	return w.start(ctx, name, p, limit, flags...)
}

// A program has the tests of a package, and the number of the active one of its mutants if it has several.
type program struct {
	binary string
	active int
}

// start runs a program in the folder of its package. The error is one of the machine, not of the tests.
func (w *workspace) start(ctx context.Context, name string, p program, limit limits, flags ...string) (result, error) {
	run, cancel := context.WithTimeout(ctx, limit.wall)
	defer cancel()
	script := fmt.Sprintf(`ulimit -v %d && ulimit -t %d && exec "$@"`, memoryLimit, int(limit.cpu.Seconds()+1))
	command := exec.CommandContext(run, "sh", append([]string{"-c", script, "sh", p.binary}, flags...)...)
	command.Dir = filepath.Join(w.tree(), name)
	command.Env = append(os.Environ(), "TMPDIR="+w.temporary(), "GOCACHE="+w.cache, fmt.Sprintf("%s=%d", activeVariable, p.active))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	begin := time.Now()
	err := command.Run()
	r := result{passed: err == nil, late: run.Err() != nil, output: output.Bytes(), wall: time.Since(begin)}
	if command.ProcessState == nil {
		return r, fmt.Errorf("start the tests: %w", err)
	}
	r.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return r, nil
}

// shuffle orders mutants by a seed, so that a run that its time limit ends has tried a random sample.
func shuffle(mutants []mutant, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
}

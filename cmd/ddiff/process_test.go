package main_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// process is a running program with its output so far.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr watch
	done           chan struct{} // closed when it has ended
}

// begin starts a run that writes its spans to stdout as they end, so that a test sees the progress: every
// step is a span named "steps".
func begin(t *testing.T, args ...string) *process {
	t.Helper()
	return beginWith(t, nil, args...)
}

// beginWith is begin with additional environment variables.
func beginWith(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startProcess(t, env, append(small(args...), "--log-level", "info")...)
}

// startProcess starts the program with a trace of its spans.
func startProcess(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	skipLong(t)
	p := &process{cmd: command(t, args...), done: make(chan struct{})}
	p.stdout.changed, p.stderr.changed = make(chan struct{}, 1), make(chan struct{}, 1)
	p.cmd.Env = append(append(p.cmd.Env, "OTEL_TRACES_EXPORTER=console", "OTEL_BSP_SCHEDULE_DELAY=10"), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	must(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // end checks the exit code
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails unless the test has failed
		<-p.done
	})
	return p
}

// steps identifies the span of a step.
const steps = `"Name":"steps"`

// signal sends a signal.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	must(t, p.cmd.Process.Signal(s))
}

// end waits for the process. It drops the spans from stdout.
func (p *process) end() ended {
	<-p.done
	var stdout strings.Builder
	for line := range strings.Lines(p.stdout.text()) {
		if !strings.HasPrefix(line, `{"Name":`) {
			stdout.WriteString(line)
		}
	}
	return ended{p.cmd.ProcessState.ExitCode(), stdout.String(), p.stderr.text()}
}

// wait waits until w has the text n times. The test fails if the process ends before.
func (p *process) wait(t *testing.T, w *watch, text string, n int) {
	t.Helper()
	for {
		if strings.Count(w.text(), text) >= n {
			return
		}
		select {
		case <-w.changed:
		case <-p.done:
			t.Fatalf("it ended before it wrote %q %d times\n%v", text, n, p.end())
		}
	}
}

// watch collects the output of a process.
type watch struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

// Write implements io.Writer.
func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return w.buf.Write(p)
}

func (w *watch) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// span is the part of a span in a trace file that tests read.
type span struct {
	Name       string
	Attributes []struct {
		Key   string
		Value struct{ IntValue json.RawMessage }
	}
}

// number is an integer attribute.
func (s span) number(t *testing.T, key string) int {
	t.Helper()
	for _, a := range s.Attributes {
		if a.Key == key {
			n, err := strconv.Atoi(strings.Trim(string(a.Value.IntValue), `"`))
			must(t, err)
			return n
		}
	}
	t.Fatalf("span %s has no attribute %s", s.Name, key)
	return 0
}

// readSpans reads a trace file of OTLP/JSON lines. S has the fields of a span that the caller uses.
func readSpans[S any](t *testing.T, path string) []S {
	t.Helper()
	var all []S
	for line := range bytes.Lines(read(t, path)) {
		var traces struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []S }
			}
		}
		must(t, json.Unmarshal(line, &traces))
		for _, r := range traces.ResourceSpans {
			for _, s := range r.ScopeSpans {
				all = append(all, s.Spans...)
			}
		}
	}
	return all
}

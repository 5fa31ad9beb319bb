package gpucheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// ErrAbsent: the device cannot be opened, so there is nothing to check.
var ErrAbsent = errors.New("the device cannot be used")

// errSkip: a section does not apply, or something that it needs is not there.
var errSkip = errors.New("skipped")

// Self starts the program itself with arguments, which must be such that the program calls
// ServeSection, ServeInference or runs its bench. See Run.
type Self func(ctx context.Context, args ...string) *exec.Cmd

// The arguments with which the program is started for a section, and as a process to signal.
var (
	SectionArgs   = []string{"doctor", "section"}
	InferenceArgs = []string{"doctor", "inference"}
)

// Run goes through the sections and gives the report, with Sections saying how each ended.
// The error wraps ErrAbsent when the device cannot be opened; it is the context's when that
// ended. progress is told each section's beginning and end.
func Run(ctx context.Context, cfg Config, self Self, progress io.Writer) (*Report, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return nil, err
	}
	if len(cfg.Photographs) == 0 {
		return nil, fmt.Errorf("%w Photographs: there is none", ErrConfig)
	}
	r := &Report{Schema: Schema, Config: cfg}
	for _, name := range Sections() {
		fmt.Fprintf(progress, "%-9s", name)
		begin := time.Now()
		err := r.section(ctx, name, cfg, self)
		if e := context.Cause(ctx); e != nil {
			fmt.Fprintln(progress)
			return r, e
		}
		end := Section{Name: name, Status: StatusOK, Seconds: time.Since(begin).Seconds()}
		switch {
		case errors.Is(err, errSkip):
			end.Status, end.Detail = StatusSkipped, err.Error()
		case err != nil:
			end.Status, end.Detail = StatusFailed, err.Error()
		}
		r.Sections = append(r.Sections, end)
		fmt.Fprintf(progress, " %-7s %6.1f s  %s\n", end.Status, end.Seconds, firstLine(end.Detail))
		if name == "provider" && err != nil {
			return r, fmt.Errorf("%w: %s", ErrAbsent, firstLine(err.Error()))
		}
	}
	return r, nil
}

// Sections are the names of the sections, in their order.
func Sections() []string {
	return []string{"provider", "network", "tasks", "speed", "campaign", "process", "torch"}
}

// section runs one of them, wherever it runs.
func (r *Report) section(ctx context.Context, name string, cfg Config, self Self) error {
	switch {
	case name != "provider" && len(cfg.Only) > 0 && !slices.Contains(cfg.Only, name):
		return skipped{"left out"}
	case name == "campaign":
		return runCampaign(ctx, cfg, self, r)
	case name == "process":
		return signalProcesses(ctx, cfg, self, r)
	}
	return startSection(ctx, name, cfg, self, r)
}

// Probe opens a device in a process of its own and says what it is.
func Probe(ctx context.Context, cfg Config, self Self) (*Provider, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return nil, err
	}
	var r Report
	if err := startSection(ctx, "provider", cfg, self, &r); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrAbsent, firstLine(err.Error()))
	}
	return r.Provider, nil
}

// Failed lists the sections that failed.
func (r *Report) Failed() []string {
	var out []string
	for _, s := range r.Sections {
		if s.Status == StatusFailed {
			out = append(out, s.Name)
		}
	}
	return out
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// answer is what the process of a section writes.
type answer struct {
	Report  Report `json:"report"`
	Error   string `json:"error,omitempty"`
	Skipped bool   `json:"skipped,omitempty"`
}

// startSection runs a section in a process of its own and takes over what it found.
func startSection(ctx context.Context, name string, cfg Config, self Self, r *Report) error {
	input, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	cmd := self(ctx, append(SectionArgs, name)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	ended := cmd.Run()
	var a answer
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil || ended != nil {
		return fmt.Errorf("its process ended without an answer: %w: %s", errors.Join(ended, err), excerpt(stderr.String()))
	}
	r.take(a.Report)
	switch {
	case a.Skipped:
		return skipped{a.Error}
	case a.Error != "":
		return errors.New(a.Error)
	}
	return nil
}

// skipped is a reason to skip that came from another process.
type skipped struct{ reason string }

func (s skipped) Error() string { return s.reason }
func (s skipped) Unwrap() error { return errSkip }

// take adopts the parts that a section filled in.
func (r *Report) take(s Report) {
	if s.Provider != nil {
		r.Provider = s.Provider
	}
	if s.Lacks != nil {
		r.Lacks = s.Lacks
	}
	if s.Torch != nil {
		r.Torch = s.Torch
	}
	r.Network = append(r.Network, s.Network...)
	r.Tasks = append(r.Tasks, s.Tasks...)
	r.Speed = append(r.Speed, s.Speed...)
}

// excerpt is the beginning and the end of what a process complained of: a crash begins with
// its cause, a traceback ends with it.
func excerpt(text string) string {
	const limit = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 2*limit {
		text = text[:limit] + " ... " + text[len(text)-limit:]
	}
	return text
}

// ServeSection is what the process of a section does: it reads the configuration, runs the
// section and writes what it found, also when it failed.
func ServeSection(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	cfg, err := readConfig(in)
	if err != nil {
		return err
	}
	var a answer
	if err := RunSection(ctx, name, cfg, &a.Report); err != nil {
		a.Error, a.Skipped = err.Error(), errors.Is(err, errSkip)
	}
	if err := json.NewEncoder(out).Encode(a); err != nil {
		return fmt.Errorf("write the answer of section %s: %w", name, err)
	}
	return nil
}

func readConfig(in io.Reader) (Config, error) {
	var cfg Config
	if err := json.NewDecoder(in).Decode(&cfg); err != nil {
		return cfg, fmt.Errorf("%w: read it from standard input: %w", ErrConfig, err)
	}
	return cfg.Complete()
}

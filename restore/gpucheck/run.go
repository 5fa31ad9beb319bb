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

// ErrAbsent: the device cannot be opened.
var ErrAbsent = errors.New("the device cannot be used")

// errNotSelected: the section is not among Config.Only.
var errNotSelected = errors.New("not selected")

// Self returns a command that runs this program with arguments: SectionArgs and a section's name for ServeSection, or
// InferenceArgs for ServeInference.
type Self func(ctx context.Context, args ...string) *exec.Cmd

// The program's arguments for a section and for the process that receives signals.
var (
	SectionArgs   = []string{"doctor", "section"}
	InferenceArgs = []string{"doctor", "inference"}
)

// Run executes the sections and returns the report, which records the outcome of each. It writes a line per section to
// progress. Errors are ErrConfig, ErrAbsent when the device cannot be opened, and the context's.
func Run(ctx context.Context, cfg Config, self Self, progress io.Writer) (*Report, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return nil, err
	}
	if len(cfg.Photographs) == 0 {
		return nil, fmt.Errorf("%w Photographs: must not be empty", ErrConfig)
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
		if err != nil {
			end.Status, end.Detail = StatusFailed, err.Error()
		}
		if errors.Is(err, errNotSelected) {
			end.Status = StatusSkipped
		}
		r.Sections = append(r.Sections, end)
		fmt.Fprintf(progress, " %-7s %6.1f s  %s\n", end.Status, end.Seconds, firstLine(end.Detail))
		if name == "provider" && err != nil {
			return r, fmt.Errorf("%w: %s", ErrAbsent, firstLine(err.Error()))
		}
	}
	return r, nil
}

// Sections returns the names of the sections in the order in which they run.
func Sections() []string {
	return []string{"provider", "network", "tasks", "speed", "process"}
}

// section runs a section, in this process or in its own.
func (r *Report) section(ctx context.Context, name string, cfg Config, self Self) error {
	switch {
	case name != "provider" && len(cfg.Only) > 0 && !slices.Contains(cfg.Only, name):
		return errNotSelected
	case name == "process":
		return signalProcesses(ctx, cfg, self, r)
	}
	return startSection(ctx, name, cfg, self, r)
}

// Probe opens a device in a process of its own and describes its provider. ErrAbsent: the device cannot be opened.
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

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// sectionResult is the output of a section's process.
type sectionResult struct {
	Report *Report `json:"report"`
	Error  string  `json:"error,omitempty"`
}

// startSection runs a section in a process of its own and adds its parts of the report to r.
func startSection(ctx context.Context, name string, cfg Config, self Self, r *Report) error {
	input, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	cmd := self(ctx, append(SectionArgs, name)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	exit := cmd.Run()
	result := sectionResult{Report: r}
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil || exit != nil {
		return fmt.Errorf("run section %s: its process ended without a result: %w: %s", name, errors.Join(exit, err), excerpt(stderr.String()))
	}
	if result.Error != "" {
		return errors.New(result.Error)
	}
	return nil
}

// excerpt returns the beginning and the end of a process's output: a crash begins with its cause, a traceback ends with
// it.
func excerpt(text string) string {
	const limit = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 2*limit {
		text = text[:limit] + " ... " + text[len(text)-limit:]
	}
	return text
}

// ServeSection is the process of a section: it reads the configuration from in, runs the section and writes its result,
// also that of a failed section, to out.
func ServeSection(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	cfg, err := readConfig(in)
	if err != nil {
		return err
	}
	result := sectionResult{Report: &Report{Schema: Schema}}
	if err := runSection(ctx, name, cfg, result.Report); err != nil {
		result.Error = err.Error()
	}
	if err := json.NewEncoder(out).Encode(result); err != nil {
		return fmt.Errorf("write the result of section %s: %w", name, err)
	}
	return nil
}

func readConfig(in io.Reader) (Config, error) {
	var cfg Config
	if err := json.NewDecoder(in).Decode(&cfg); err != nil {
		return cfg, fmt.Errorf("%w: read configuration from standard input: %w", ErrConfig, err)
	}
	return cfg.Complete()
}

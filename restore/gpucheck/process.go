package gpucheck

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"ddiff/restore/operator"
	"ddiff/restore/solver"
)

// Lines that the inference process prints.
const (
	lineReady   = "ready"   // the device has completed its first steps
	lineDrained = "drained" // the process received SIGTERM and stopped
)

const (
	readyLimit = 5 * time.Minute  // for a provider that compiles kernels
	drainLimit = 60 * time.Second // for a chunk of steps
	freeLimit  = 30 * time.Second // for the driver to free memory
	memorySlop = 64               // MiB that other processes may allocate meanwhile
)

// ServeInference restores one image repeatedly until the context ends, then prints lineDrained and returns nil. It
// keeps the device busy, as a worker does.
func ServeInference(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	cfg, err := readConfig(in)
	if err != nil {
		return err
	}
	s, err := openSession(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	p, _, err := s.network(bundledNetwork)
	if err != nil {
		return err
	}
	m, err := measure(ctx, s.cpu, cfg.Photographs[0], operator.SuperResolution, cfg.Size, cfg.Steps)
	if err != nil {
		return err
	}
	v := s.variants[0]
	solve, err := newSolver(v.rt, p, m.op, m.steps, 1, v.build)
	if err != nil {
		return err
	}
	defer solve.Close()
	ready := false
	for {
		_, err := solve.Solve(ctx, []solver.Problem{m.problem}, func(int) error {
			if !ready {
				fmt.Fprintln(out, lineReady)
				ready = true
			}
			return nil
		})
		if ctx.Err() != nil {
			fmt.Fprintln(out, lineDrained)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// inference is a process running ServeInference.
type inference struct {
	cmd    *exec.Cmd
	lines  chan string
	stderr bytes.Buffer
}

// startInference starts an inference process and waits until its device is busy.
func startInference(ctx context.Context, cfg Config, self Self) (*inference, error) {
	input, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	p := &inference{cmd: self(ctx, InferenceArgs...), lines: make(chan string, 8)}
	p.cmd.Stdin, p.cmd.Stderr = bytes.NewReader(input), &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start inference process: %w", err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	if err := p.wait(lineReady, readyLimit); err != nil {
		return nil, errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
	}
	return p, nil
}

// wait waits until the process prints a line.
func (p *inference) wait(line string, limit time.Duration) error {
	timeout := time.After(limit)
	for {
		select {
		case got, ok := <-p.lines:
			if !ok {
				return fmt.Errorf("inference process exited before it was %s: %s", line, excerpt(p.stderr.String()))
			}
			if got == line {
				return nil
			}
		case <-timeout:
			return fmt.Errorf("inference process was not %s after %v", line, limit)
		}
	}
}

// drain sends SIGTERM and returns the exit code and the seconds until exit.
func (p *inference) drain() (code int, seconds float64, err error) {
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return -1, 0, fmt.Errorf("send SIGTERM: %w", err)
	}
	drained := p.wait(lineDrained, drainLimit)
	if drained != nil {
		drained = errors.Join(drained, p.cmd.Process.Kill())
	}
	err = p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("exit after SIGTERM: %w: %s", err, excerpt(p.stderr.String()))
	}
	return p.cmd.ProcessState.ExitCode(), time.Since(begin).Seconds(), errors.Join(drained, err)
}

// kill sends SIGKILL and waits for the exit.
func (p *inference) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("send SIGKILL: %w", err)
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// signalProcesses sends SIGTERM and SIGKILL to processes whose device is busy, and checks the device afterwards.
func signalProcesses(ctx context.Context, cfg Config, self Self, r *Report) error {
	first, err := startInference(ctx, cfg, self)
	if err != nil {
		return err
	}
	r.Process = &Process{}
	if r.Process.DrainExit, r.Process.DrainSeconds, err = first.drain(); err != nil {
		return err
	}

	before, known, err := deviceMemory(ctx, cfg.device())
	if err != nil {
		return err
	}
	second, err := startInference(ctx, cfg, self)
	if err != nil {
		return err
	}
	during, _, err := deviceMemory(ctx, cfg.device())
	if err := errors.Join(err, second.kill()); err != nil {
		return err
	}
	if known {
		after, err := waitForMemory(ctx, cfg, before)
		r.Process.Memory = []int{before, during, after}
		if err != nil {
			return err
		}
	}
	third, err := startInference(ctx, cfg, self)
	if err != nil {
		return fmt.Errorf("use the device after SIGKILL: %w", err)
	}
	if _, _, err := third.drain(); err != nil {
		return fmt.Errorf("use the device after SIGKILL: %w", err)
	}
	r.Process.Restarted = true
	return nil
}

// waitForMemory waits until the memory in use on the device is back at its value before, and returns it.
func waitForMemory(ctx context.Context, cfg Config, before int) (after int, err error) {
	for deadline := time.Now().Add(freeLimit); ; {
		after, _, err = deviceMemory(ctx, cfg.device())
		if err != nil || after <= before+memorySlop {
			return after, err
		}
		if time.Now().After(deadline) {
			return after, fmt.Errorf("free device memory: %d MiB are in use %v after SIGKILL, %d MiB were before", after, freeLimit, before)
		}
		select {
		case <-ctx.Done():
			return after, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

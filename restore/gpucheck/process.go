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

const (
	readyLimit = 5 * time.Minute  // for a provider that compiles kernels
	drainLimit = 60 * time.Second // for a chunk of steps
	freeLimit  = 30 * time.Second // for the driver to free memory
	memorySlop = 64               // MiB that other processes may allocate meanwhile
)

// ServeInference keeps the device busy as a worker does: it restores one image repeatedly, writes a line after the first steps, and
// returns nil when the context ends.
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
	solve, err := s.variants[0].newSolver(p, m.op, m.steps, 1)
	if err != nil {
		return err
	}
	defer solve.Close()
	ready := false
	for ctx.Err() == nil {
		_, err := solve.Solve(ctx, []solver.Problem{m.problem}, func(int) error {
			if !ready {
				fmt.Fprintln(out, "ready")
				ready = true
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// inference is a process running ServeInference.
type inference struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// startInference starts an inference process and waits until its device is busy.
func startInference(ctx context.Context, cfg Config, self Self) (*inference, error) {
	input, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	p := &inference{cmd: self(ctx, InferenceArgs...)}
	p.cmd.Stdin, p.cmd.Stderr = bytes.NewReader(input), &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start inference process: %w", err)
	}
	defer p.killAfter(readyLimit)()
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("inference process made no step in %v: %w: %s", readyLimit, errors.Join(err, p.cmd.Wait()), excerpt(p.stderr.String()))
	}
	return p, nil
}

// killAfter kills the process after a time, unless stop is called before.
func (p *inference) killAfter(limit time.Duration) (stop func() bool) {
	return time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() }).Stop // a process that has ended needs none
}

// drain sends SIGTERM and returns the exit code and the seconds until exit. Another end than with code 0 within the limit is an error.
func (p *inference) drain() (code int, seconds float64, err error) {
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return -1, 0, fmt.Errorf("send SIGTERM: %w", err)
	}
	defer p.killAfter(drainLimit)()
	if err = p.cmd.Wait(); err != nil {
		err = fmt.Errorf("exit after SIGTERM within %v: %w: %s", drainLimit, err, excerpt(p.stderr.String()))
	}
	return p.cmd.ProcessState.ExitCode(), time.Since(begin).Seconds(), err
}

// kill sends SIGKILL and waits for the exit.
func (p *inference) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("send SIGKILL: %w", err)
	}
	err := p.cmd.Wait()
	if _, killed := errors.AsType[*exec.ExitError](err); killed {
		return nil
	}
	return err
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
	if err == nil {
		_, _, err = third.drain()
	}
	if err != nil {
		return fmt.Errorf("use the device after SIGKILL: %w", err)
	}
	r.Process.Restarted = true
	return nil
}

// waitForMemory waits until the memory in use on the device is back at its value before, and returns it.
func waitForMemory(ctx context.Context, cfg Config, before int) (after int, err error) {
	for begin := time.Now(); ; {
		after, _, err = deviceMemory(ctx, cfg.device())
		if err != nil || after <= before+memorySlop {
			return after, err
		}
		if time.Since(begin) > freeLimit {
			return after, fmt.Errorf("free device memory: %d MiB are in use %v after SIGKILL, %d MiB were before", after, freeLimit, before)
		}
		select {
		case <-ctx.Done():
			return after, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

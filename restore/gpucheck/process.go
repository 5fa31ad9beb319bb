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

// What the process that is signalled says.
const (
	saysReady   = "ready"   // the device has made its first steps
	saysDrained = "drained" // it was told to end, and ends
)

const (
	readyLimit = 5 * time.Minute  // for a provider that compiles kernels
	drainLimit = 60 * time.Second // for a chunk of steps
	freeLimit  = 30 * time.Second // for the driver to free memory
	memorySlop = 64               // MiB that others on the device may take meanwhile
)

// ServeInference restores the same image again and again until the context ends, then says
// so and returns nil: a worker whose device is never idle.
func ServeInference(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	cfg, err := readConfig(in)
	if err != nil {
		return err
	}
	b, err := newBench(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	p, _, err := b.network(bundledNetwork)
	if err != nil {
		return err
	}
	m, err := measure(ctx, b.cpu, cfg.Photographs[0], operator.SuperResolution, cfg.Size, cfg.Steps)
	if err != nil {
		return err
	}
	v := b.variants[0]
	s, err := solver.New(v.rt, p, m.op, m.config, 1, v.build)
	if err != nil {
		return err
	}
	defer s.Close()
	ready := false
	for {
		_, err := s.Solve(ctx, []solver.Problem{m.problem}, func(int) error {
			if !ready {
				fmt.Fprintln(out, saysReady)
				ready = true
			}
			return nil
		})
		if ctx.Err() != nil {
			fmt.Fprintln(out, saysDrained)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// inference is a process that runs ServeInference.
type inference struct {
	cmd    *exec.Cmd
	lines  chan string
	stderr bytes.Buffer
}

// startInference starts one and waits until its device is busy.
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
		return nil, fmt.Errorf("start a process: %w", err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	if err := p.wait(saysReady, readyLimit); err != nil {
		return nil, errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
	}
	return p, nil
}

// wait waits until the process says something.
func (p *inference) wait(line string, limit time.Duration) error {
	timeout := time.After(limit)
	for {
		select {
		case got, ok := <-p.lines:
			if !ok {
				return fmt.Errorf("the process ended before it was %s: %s", line, excerpt(p.stderr.String()))
			}
			if got == line {
				return nil
			}
		case <-timeout:
			return fmt.Errorf("the process was not %s after %v", line, limit)
		}
	}
}

// drain sends SIGTERM, and gives the exit code and the seconds to the end.
func (p *inference) drain() (code int, seconds float64, err error) {
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return -1, 0, fmt.Errorf("send SIGTERM: %w", err)
	}
	said := p.wait(saysDrained, drainLimit)
	if said != nil {
		said = errors.Join(said, p.cmd.Process.Kill())
	}
	err = p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("after SIGTERM: %w: %s", err, excerpt(p.stderr.String()))
	}
	return p.cmd.ProcessState.ExitCode(), time.Since(begin).Seconds(), errors.Join(said, err)
}

// kill sends SIGKILL and waits for the end.
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

// signalProcesses ends processes whose device is busy, and looks at what they leave.
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
	during, _, during1 := deviceMemory(ctx, cfg.device())
	if err := errors.Join(during1, second.kill()); err != nil {
		return err
	}
	if known {
		after, err := freed(ctx, cfg, before)
		r.Process.Memory = []int{before, during, after}
		if err != nil {
			return err
		}
	}
	third, err := startInference(ctx, cfg, self)
	if err != nil {
		return fmt.Errorf("after SIGKILL: %w", err)
	}
	if _, _, err := third.drain(); err != nil {
		return fmt.Errorf("after SIGKILL: %w", err)
	}
	r.Process.Restarted = true
	return nil
}

// freed waits until the device has as much memory as before.
func freed(ctx context.Context, cfg Config, before int) (after int, err error) {
	for deadline := time.Now().Add(freeLimit); ; {
		after, _, err = deviceMemory(ctx, cfg.device())
		if err != nil || after <= before+memorySlop {
			return after, err
		}
		if time.Now().After(deadline) {
			return after, fmt.Errorf("%v after SIGKILL the device has %d MiB in use, before it were %d", freeLimit, after, before)
		}
		select {
		case <-ctx.Done():
			return after, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

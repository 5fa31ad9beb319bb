package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Process is a program that can be started and stopped repeatedly, with the same arguments. Its
// output is appended to one log file.
type Process struct {
	// Name appears in messages and names the log file.
	Name string

	path   string
	args   []string
	env    []string
	log    string
	disk   *disk // nil: no disk of its own
	memory int64 // limit in bytes; 0: none

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
	begin  int64 // offset of the log of the last start
}

// NewProcess prepares a process; Start runs it. Its log is DIR/NAME.log. env extends Environment.
func NewProcess(dir, name string, env []string, path string, args ...string) *Process {
	return &Process{Name: name, path: path, args: args, env: env, log: filepath.Join(dir, name+".log")}
}

// Start starts the process, which must not run.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs() {
		return fmt.Errorf("start %s: it already runs", p.Name)
	}
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer log.Close() // the child has its own descriptor
	info, err := log.Stat()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	cmd := p.command()
	cmd.Env = append(Environment(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	// The child does not receive interrupts of the terminal: this process stops its children in
	// order. If this process dies, the kernel kills them.
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		cmd.Wait() //nolint:errcheck // ProcessState has the result
	}()
	p.cmd, p.exited, p.begin = cmd, exited, info.Size()
	return nil
}

// runs reports whether the process runs. The caller holds mu.
func (p *Process) runs() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Running reports whether the process runs or is suspended.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs()
}

// PID returns the id of the last started process.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Exited returns a channel that closes at the end of the last started process.
func (p *Process) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exited
}

// Code returns the exit code of an ended process; -1 after a signal.
func (p *Process) Code() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.runs() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal to the process; it is a no-op after its end.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.runs() {
		return nil
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", s, p.Name, err)
	}
	return nil
}

// Kill kills the process and waits for its end.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs() {
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have exited
		<-p.exited
	}
}

// Stop sends SIGTERM, waits, and returns the exit code. A process that exceeds the limit is killed, which is an error.
func (p *Process) Stop(within time.Duration) (int, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return -1, err
	}
	if exited := p.Exited(); exited != nil {
		select {
		case <-exited:
		case <-time.After(within):
			p.Kill()
			return -1, fmt.Errorf("stop %s: it did not end within %v; see %s", p.Name, within, p.log)
		}
	}
	return p.Code(), nil
}

// LogFile returns the path of the log.
func (p *Process) LogFile() string { return p.log }

// Log returns the output since the last start.
func (p *Process) Log() string {
	p.mu.Lock()
	begin := p.begin
	p.mu.Unlock()
	data, err := os.ReadFile(p.log)
	if err != nil || int64(len(data)) < begin {
		return ""
	}
	return string(data[begin:])
}

// waitLimit is the deadline for a text in a log.
const waitLimit = 2 * time.Minute

// WaitLog waits until the process has written text since its last start, for at most two minutes.
// An earlier end of the process is an error.
func (p *Process) WaitLog(ctx context.Context, text string) error {
	return p.waitLog(ctx, text, 1)
}

// waitLog waits until the log contains text n times.
func (p *Process) waitLog(ctx context.Context, text string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if bytes.Count([]byte(p.Log()), []byte(text)) >= n {
			return nil
		}
		running := p.Running()
		if !running && bytes.Count([]byte(p.Log()), []byte(text)) < n {
			return fmt.Errorf("%s has ended with code %d before it wrote %q:\n%s", p.Name, p.Code(), text, tail(p.Log()))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to write %q: %w:\n%s", p.Name, text, ctx.Err(), tail(p.Log()))
		case <-tick.C:
		}
	}
}

// tail returns the end of a log.
func tail(log string) string {
	const most = 4000
	if len(log) <= most {
		return log
	}
	return "..." + log[len(log)-most:]
}

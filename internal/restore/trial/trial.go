// Package trial runs a stranger's network for the first time: in a child process of the program, with limits of memory and time, so that a file
// that needs too much, never ends or crashes ONNX Runtime ends the child, and is an error here.
//
// First.Run is that of whoever is about to use the file, Serve that of the child, see cmd/ddiff. What the child runs is the check that the caller makes
// afterwards in its own process ([ddiff/restore/operator.File.Verify], [ddiff/internal/restore/prior.Prior.Verify]), on the CPU and on the smallest images.
package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ddiff/internal/hostmemory"
	"ddiff/internal/restore/onnx/onnxruntime"
)

const (
	// Arg is the first argument of a child.
	Arg = "first-run"
	// program ends the path of the main package that calls Serve. Other programs, such as tests, have no children.
	program = "/cmd/ddiff"

	// baseMemory is the memory of a child without the file's weights, in bytes, and weightCopies that for each byte of them: the parsed file, the
	// marshalled graph, the runtime's copy and that in the layout of its kernels.
	baseMemory   = 2 << 30
	weightCopies = 6
	// timeLimit is the longest time of a child. A call of a usual network takes milliseconds on the smallest image, and seconds to compile.
	timeLimit = 5 * time.Minute
	// threads is the largest number of threads of a child: each takes memory.
	threads = 4
)

// File is a network that did not come with the program.
type File struct {
	// Kind is "operator", "prior" or "metric", Name that of the file in messages.
	Kind, Name string
	SHA256     string
	// Data has the bytes of the file, Dir the folder of data files beside it, or is empty.
	Data []byte
	Dir  string
	// Weights is the size of its weights in bytes.
	Weights int64
	// Unusable is the error of a file that cannot be used.
	Unusable error
}

// First runs a file once, with the bytes that it has until then. The zero value has nothing to run.
type First struct {
	// Data has the bytes of the file, Dir the folder of data files beside it, or is empty.
	Data []byte
	Dir  string

	mu sync.Mutex
}

// Run returns nil if a child has run the file, now or once before on this machine. Its error is f.Unusable for a file that a child refuses, that needs
// more than the child's memory or time, or that ends it. Errors of ctx, and of a child that cannot start, pass through. On a GPU, a file that the CPU
// cannot run is left to the caller. In another program than ddiff, and in a child, it
// does nothing. It drops the bytes of a file that has passed.
func (t *First) Run(ctx context.Context, rt *onnxruntime.Runtime, f File) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Data == nil {
		return nil
	}
	f.Data, f.Dir = t.Data, t.Dir
	if err := run(ctx, rt, f); err != nil {
		return err
	}
	t.Data = nil
	return nil
}

// memory is the limit of the child's memory in bytes.
func (f File) memory() int64 {
	limit := int64(baseMemory)
	if half := hostmemory.Machine() / 2; half > 0 {
		limit = min(limit, half)
	}
	return limit + weightCopies*f.Weights
}

// answer is the last line of a child.
type answer struct {
	Error string `json:"error,omitempty"`
	// Unusable: the file is to blame, and not the machine.
	Unusable bool `json:"unusable,omitempty"`
	// Memory: the child needs more than its limit.
	Memory bool `json:"memory,omitempty"`
}

// refusal is an error of the child, as it says it.
type refusal struct {
	text string
	kind error
}

func (r refusal) Error() string { return r.text }

func (r refusal) Unwrap() error { return r.kind }

// run is First.Run for the bytes of f.
func run(ctx context.Context, rt *onnxruntime.Runtime, f File) error {
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasSuffix(info.Path, program) || len(os.Args) > 1 && os.Args[1] == Arg {
		return nil
	}
	passed := mark(f)
	if _, err := os.Stat(passed); passed != "" && err == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	a, err := start(limited, rt, f)
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s %s: %w: its first run, in a process of its own, "+format+"; export a smaller network", append([]any{f.Kind, f.Name, f.Unusable}, args...)...)
	}
	var end *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fail("has not ended after %v", timeLimit)
	case a.Memory:
		return fail("needs more than %d MiB of memory", f.memory()>>20)
	case a.Unusable && rt.GPU():
		return nil
	case a.Unusable:
		return refusal{a.Error, f.Unusable}
	case a.Error != "":
		return fmt.Errorf("run %s %s in a process of its own: %s", f.Kind, f.Name, a.Error)
	case errors.As(err, &end):
		return fail("ended with %v", end)
	case err != nil:
		return fmt.Errorf("run %s %s in a process of its own: %w", f.Kind, f.Name, err)
	}
	if passed != "" {
		_ = os.MkdirAll(filepath.Dir(passed), 0o700) // without the mark the next process runs a child again
		_ = os.WriteFile(passed, nil, 0o600)
	}
	return nil
}

// mark is the path of the file that says that this user's processes on this machine have run f, or empty.
func mark(f File) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "ddiff", "trials", f.Kind+"-"+f.SHA256)
}

// start runs a child to its end.
func start(ctx context.Context, rt *onnxruntime.Runtime, f File) (a answer, err error) {
	self, err := os.Executable()
	if err != nil {
		return a, err
	}
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		self = "/proc/self/exe" // also after an upgrade has replaced the file
	}
	cmd := exec.CommandContext(ctx, self, Arg, f.Kind, f.Name, f.Dir, rt.Library(), strconv.FormatInt(f.memory(), 10),
		strconv.Itoa(min(rt.Threads(), threads)), strconv.Itoa(len(f.Data)))
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe() // stays open as long as this process lives: its end ends the child
	if err != nil {
		return a, err
	}
	defer in.Close() // Wait has closed it
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return a, err
	}
	_, _ = io.Copy(in, bytes.NewReader(f.Data)) // fails if the child has ended, which Wait reports
	err = cmd.Wait()
	_ = json.Unmarshal(out.Bytes(), &a) // a child that was ended has no answer
	return a, err
}

// Check runs a file on the smallest images, as its user will.
type Check func(ctx context.Context, rt *onnxruntime.Runtime, f File) error

// Serve is the child with the arguments after Arg. It returns the exit code of the process.
func Serve(ctx context.Context, args []string, in io.Reader, out io.Writer, checks map[string]Check) int {
	say := func(a answer) int {
		_ = json.NewEncoder(out).Encode(a) // nobody listens where the parent has ended
		return 1
	}
	const count = 7
	if len(args) != count || checks[args[0]] == nil {
		return say(answer{Error: "the arguments are those of another version; start the process again"})
	}
	var numbers [3]int64
	for i := range numbers {
		n, err := strconv.ParseInt(args[4+i], 10, 64)
		if err != nil {
			return say(answer{Error: err.Error()})
		}
		numbers[i] = n
	}
	f := File{Kind: args[0], Name: args[1], Dir: args[2], Data: make([]byte, numbers[2])}
	if _, err := io.ReadFull(in, f.Data); err != nil {
		return say(answer{Error: err.Error()})
	}
	confine(numbers[0], func() { os.Exit(say(answer{Memory: true})) })
	go func() {
		_, _ = in.Read(make([]byte, 1)) // returns at the end of the parent
		os.Exit(1)
	}()
	rt, err := onnxruntime.Open(onnxruntime.Config{Library: args[3], Provider: onnxruntime.ProviderCPU, Threads: int(numbers[1])})
	if err != nil {
		return say(answer{Error: err.Error()})
	}
	// The process ends without rt.Close: there is nothing to keep.
	err = checks[f.Kind](ctx, rt, f)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, onnxruntime.ErrMemory):
		return say(answer{Memory: true})
	}
	return say(answer{Error: strings.TrimSpace(err.Error()), Unusable: !onnxruntime.Environmental(ctx, err)})
}

// virtualSlack is the memory that a process reserves and does not use, in bytes: heaps and stacks of threads, the arenas of Go.
const virtualSlack = 1 << 30

// confine limits the memory of this process and calls full when its resident part exceeds the limit. The kernel, which chooses a process to end when the
// machine has no memory left, chooses this one.
func confine(limit int64, full func()) {
	n := uint64(limit + virtualSlack)
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: n, Max: n}) // allocations above it fail; where there is none, the watch below is alone
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})               // no dump
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)         // not on other systems
	go func() {
		for range time.Tick(5 * time.Millisecond) {
			if hostmemory.Peak() > limit {
				full()
			}
		}
	}()
}

package onnxruntime

import (
	"runtime"
	"sync"
)

// thread is the only thread of the operating system that uses the GPU. The CUDA provider allocates a context (streams,
// handles, workspace) for each calling thread, and goroutines move between threads.
type thread struct {
	work chan func()
}

func startThread() *thread {
	t := &thread{work: make(chan func())}
	go func() {
		// Without an unlock the thread ends with the goroutine, and the provider frees its context.
		runtime.LockOSThread()
		for f := range t.work {
			f()
		}
	}()
	return t
}

// recording excludes all other calls of the process while the driver records the work of a model for later replays: an allocation on any device or
// stream would end the record with an error, and the other call too (cudaStreamCaptureModeGlobal).
var recording sync.RWMutex

// do runs f on the thread, or on the caller's if t is nil.
func (t *thread) do(f func() error) error {
	if t == nil {
		return f()
	}
	recording.RLock()
	defer recording.RUnlock()
	return t.run(f)
}

// alone is do without calls on other threads of the process.
func (t *thread) alone(f func() error) error {
	if t == nil {
		return f()
	}
	recording.Lock()
	defer recording.Unlock()
	return t.run(f)
}

func (t *thread) run(f func() error) error {
	done := make(chan error, 1)
	t.work <- func() { done <- f() }
	return <-done
}

// threads are the threads of a runtime: the first one, and those of further streams, which start at their first use.
type threads struct {
	mu  sync.Mutex
	all []*thread
}

// at returns thread i, or nil if ts is nil.
func (ts *threads) at(i int) *thread {
	if ts == nil {
		return nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for len(ts.all) <= i {
		ts.all = append(ts.all, startThread())
	}
	return ts.all[i]
}

func (ts *threads) stop() {
	if ts == nil {
		return
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		close(t.work)
	}
	ts.all = nil
}

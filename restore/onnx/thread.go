package onnx

import "runtime"

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

// do runs f on the thread, or on the caller's if t is nil.
func (t *thread) do(f func() error) error {
	if t == nil {
		return f()
	}
	done := make(chan error, 1)
	t.work <- func() { done <- f() }
	return <-done
}

func (t *thread) stop() {
	if t != nil {
		close(t.work)
	}
}

package onnx

import "runtime"

// thread is one thread of the operating system on which everything of a GPU is done. The
// CUDA provider keeps a context (streams, handles, workspace) for each thread that calls it,
// and goroutines move between threads.
type thread struct {
	work chan func()
}

func startThread() *thread {
	t := &thread{work: make(chan func())}
	go func() {
		// Not unlocked: the thread ends with the goroutine, and with it what the provider keeps.
		runtime.LockOSThread()
		for f := range t.work {
			f()
		}
	}()
	return t
}

// do runs f on the thread, or on the caller's where there is none.
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

package onnxruntime

import (
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

func TestPreserveSignals(t *testing.T) {
	defer signal.Reset(syscall.SIGUSR2)
	changed, err := preserveSignals(func() error { signal.Ignore(syscall.SIGUSR2); return nil })
	if err != nil || changed != 1 {
		t.Errorf("%d handlers restored, error %v; want 1", changed, err)
	}
	changed, err = preserveSignals(func() error { return nil })
	if err != nil || changed != 0 {
		t.Errorf("%d handlers restored, error %v; want 0", changed, err)
	}
}

// signalStack is stack_t of Linux.
type signalStack struct {
	address uintptr
	flags   int32
	_       int32
	size    uintptr
}

// swapSignalStack replaces the signal stack of the thread, unless next is nil, and returns the one before.
func swapSignalStack(t *testing.T, next *signalStack) signalStack {
	t.Helper()
	var before signalStack
	_, _, errno := syscall.RawSyscall(syscall.SYS_SIGALTSTACK, uintptr(unsafe.Pointer(next)), uintptr(unsafe.Pointer(&before)), 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return before
}

// A library that gives the thread another signal stack, and later frees it, must not end the process with the next signal.
func TestPreserveSignalStack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := swapSignalStack(t, nil)
	memory, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	err = preserveStack(func() error {
		swapSignalStack(t, &signalStack{address: uintptr(unsafe.Pointer(&memory[0])), size: uintptr(len(memory))})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if now := swapSignalStack(t, nil); now != before {
		t.Errorf("the thread has the signal stack %+v, want %+v", now, before)
		swapSignalStack(t, &before)
	}
	if err := syscall.Munmap(memory); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGURG); err != nil {
			t.Fatal(err)
		}
	}
}

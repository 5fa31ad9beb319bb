package onnxruntime

/*
#include <signal.h>
#include <string.h>

#define DDIFF_SIGNALS 64

static struct sigaction ddiff_saved[DDIFF_SIGNALS + 1];

static void ddiff_save_signals(void) {
	for (int i = 1; i <= DDIFF_SIGNALS; i++) {
		memset(&ddiff_saved[i], 0, sizeof ddiff_saved[i]);
		sigaction(i, NULL, &ddiff_saved[i]);
	}
}

static int ddiff_restore_signals(void) {
	int changed = 0;
	for (int i = 1; i <= DDIFF_SIGNALS; i++) {
		struct sigaction now;
		memset(&now, 0, sizeof now);
		if (sigaction(i, NULL, &now) != 0) continue;
		if (now.sa_handler == ddiff_saved[i].sa_handler && now.sa_flags == ddiff_saved[i].sa_flags) continue;
		if (sigaction(i, &ddiff_saved[i], NULL) == 0) changed++;
	}
	return changed;
}

static __thread stack_t ddiff_stack;

static void ddiff_save_stack(void) { sigaltstack(NULL, &ddiff_stack); }

static void ddiff_restore_stack(void) {
	stack_t now;
	if (sigaltstack(NULL, &now) == 0 && now.ss_sp != ddiff_stack.ss_sp) sigaltstack(&ddiff_stack, NULL);
}
*/
import "C"

import (
	"runtime"
	"sync"
)

var signalMu sync.Mutex

// preserveSignals runs f, restores the signal handlers that f changed, and returns their number. Execution
// providers install handlers (CUDA does when a session is made and in its first run) without the flags that Go needs: a Ctrl-C
// during inference would crash the process (yalue/onnxruntime_go#140).
func preserveSignals(f func() error) (changed int, err error) {
	signalMu.Lock()
	defer signalMu.Unlock()
	C.ddiff_save_signals()
	err = f()
	return int(C.ddiff_restore_signals()), err
}

// preserveStack runs f and restores the signal stack of the thread, beside other threads. On CPUs with AMX, OpenVINO, which installs no
// handlers, gives the calling thread a signal stack of its own, and frees it on any thread when its last network ends: the next signal of
// the first thread, also one of Go's scheduler, would end the process.
func preserveStack(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.ddiff_save_stack()
	defer C.ddiff_restore_stack()
	return f()
}

package testbed

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// clockHook replaces clock_gettime in a process: it makes the system call and adds the number at
// clockOffset to the seconds of the wall clock (clock 0).
var clockHook = []byte{
	0xb8, 228, 0, 0, 0, // mov eax, SYS_clock_gettime
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi
	0x75, 0x0d, // jnz to the end
	0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0, // mov rcx, seconds
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3, // ret
}

const clockOffset = 13

// MoveClock sets the wall clock of this process only to the true time plus by, in whole seconds. As
// on a machine whose date is set, the monotonic clock is unaffected. The process must run.
//
// A Go program reads the clock through a function that the kernel maps into every process (vDSO).
// A preloaded library is bypassed by it, and a time namespace moves the monotonic clock only.
// MoveClock therefore replaces the function in the memory of the suspended process.
func (p *Process) MoveClock(by time.Duration) error {
	if err := p.moveClock(by); err != nil {
		return fmt.Errorf("move the clock of %s: %w", p.Name, err)
	}
	return nil
}

func (p *Process) moveClock(by time.Duration) (err error) {
	pid := p.PID()
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	begin, end, err := vdso(pid)
	if err != nil {
		return err
	}
	image := make([]byte, end-begin)
	if _, err := memory.ReadAt(image, begin); err != nil {
		return err
	}
	function, err := clockFunction(image)
	if err != nil {
		return err
	}
	used := len(bytes.TrimRight(image, "\x00"))
	if at := hookOf(image, function); at > 0 {
		used = at // the hook of an earlier call
	} else if used = (used + 63) / 64 * 64; used+len(clockHook) > len(image) {
		return errors.New("no free space behind the functions of the vDSO")
	}
	hook := bytes.Clone(clockHook)
	binary.LittleEndian.PutUint64(hook[clockOffset:], uint64(int64(by/time.Second)))
	jump := []byte{0xe9, 0, 0, 0, 0}
	binary.LittleEndian.PutUint32(jump[1:], uint32(int32(used-function-len(jump))))

	if err := suspendOutside(p, pid, begin, end); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Signal(syscall.SIGCONT)) }()
	if _, err := memory.WriteAt(hook, begin+int64(used)); err != nil {
		return err
	}
	_, err = memory.WriteAt(jump, begin+int64(function))
	return err
}

// vdso returns the address range of the kernel's functions in a process.
func vdso(pid int) (begin, end int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &begin, &end)
			return begin, end, err
		}
	}
	return 0, 0, errors.New("the process has no vDSO")
}

// clockFunction returns the offset of clock_gettime in a vDSO.
func clockFunction(image []byte) (int, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return int(s.Value), nil
		}
	}
	return 0, errors.New("the vDSO has no clock_gettime")
}

// hookOf returns the address of an existing hook, or 0.
func hookOf(image []byte, function int) int {
	if image[function] != 0xe9 {
		return 0
	}
	at := function + 5 + int(int32(binary.LittleEndian.Uint32(image[function+1:])))
	if at < 0 || at+len(clockHook) > len(image) || !bytes.Equal(image[at:at+clockOffset], clockHook[:clockOffset]) {
		return 0
	}
	return at
}

// suspendOutside suspends the process while no thread is inside the vDSO.
func suspendOutside(p *Process, pid int, begin, end int64) error {
	for range 50 {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		outside, err := stoppedOutside(pid, begin, end)
		if err == nil && outside {
			return nil
		}
		if err := errors.Join(err, p.Signal(syscall.SIGCONT)); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("a thread was inside the vDSO at every attempt")
}

// stoppedOutside waits until all threads have stopped and reports whether none is in the vDSO.
func stoppedOutside(pid int, begin, end int64) (bool, error) {
	limit := time.Now().Add(2 * time.Second)
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	for {
		threads, err := os.ReadDir(tasks)
		if err != nil {
			return false, err
		}
		outside, stopped := true, true
		for _, thread := range threads {
			// "running", or the number of a system call (-1 for none) ... stack and program counter.
			text, err := os.ReadFile(filepath.Join(tasks, thread.Name(), "syscall"))
			if err != nil {
				return false, err
			}
			fields := strings.Fields(string(text))
			if len(fields) < 2 {
				stopped = false
				break
			}
			var at int64
			if _, err := fmt.Sscanf(fields[len(fields)-1], "0x%x", &at); err != nil {
				return false, err
			}
			outside = outside && (at < begin || at >= end)
		}
		if stopped {
			return outside, nil
		}
		if time.Now().After(limit) {
			return false, errors.New("the process does not stop")
		}
		time.Sleep(time.Millisecond)
	}
}

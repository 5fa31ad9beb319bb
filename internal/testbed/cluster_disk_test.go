package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// disk is a small file system of one process.
type disk struct {
	dir   string
	bytes int64
	attr  *syscall.SysProcAttr
}

// OwnDisk mounts a file system of the given size in bytes at dir, in a mount namespace of the
// process, at its next start. It returns an error where mounts are forbidden.
func (p *Process) OwnDisk(dir string, bytes int64) error {
	attr := namespace()
	try := exec.Command("/bin/sh", "-c", mountScript, dir, strconv.FormatInt(bytes, 10), "/bin/true")
	try.SysProcAttr = attr
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("give %s a disk: %w", p.Name, err)
	}
	if out, err := try.CombinedOutput(); err != nil {
		return fmt.Errorf("give %s a disk: %w: %s", p.Name, err, out)
	}
	p.disk = &disk{dir: dir, bytes: bytes, attr: attr}
	return nil
}

// mountScript mounts a disk of $1 bytes at $0 and executes the program.
const mountScript = `mount -t tmpfs -o size="$1" tmpfs "$0" && shift && exec "$@"`

// namespace returns the attributes of a process with its own mounts. Unprivileged users need a user namespace for them.
func namespace() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		attr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
	}
	return attr
}

// command prepares the process, with its disk.
func (p *Process) command() *exec.Cmd {
	// Signals end the process, not a context.
	if p.disk == nil {
		cmd := exec.Command(p.path, p.args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		return cmd
	}
	args := append([]string{"-c", mountScript, p.disk.dir, strconv.FormatInt(p.disk.bytes, 10), p.path}, p.args...)
	cmd := exec.Command("/bin/sh", args...)
	attr := *p.disk.attr
	cmd.SysProcAttr = &attr
	return cmd
}

// fileLimit is the largest file, in bytes, that a process without its own disk may write while its disk counts as full.
const fileLimit = 4 << 20

// limitFiles sets the largest file size of the process.
func (p *Process) limitFiles(limit string) error {
	cmd := exec.Command("prlimit", "--pid", strconv.Itoa(p.PID()), "--fsize="+limit+":")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("limit the files of %s: %w: %s", p.Name, err, out)
	}
	return nil
}

// fillerName is the file that fills a disk.
const fillerName = "filler"

// FillDisk fills the disk of the process until FreeDisk. A process without its own disk gets a
// limit of 4 MiB per file instead. The process must run.
func (p *Process) FillDisk() error {
	if p.disk == nil {
		return p.limitFiles(strconv.Itoa(fileLimit))
	}
	f, err := os.OpenFile(p.filler(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("fill the disk of %s: %w", p.Name, err)
	}
	defer f.Close() // its content has no value
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2] // down to the last bytes
		} else if err != nil {
			return fmt.Errorf("fill the disk of %s: %w", p.Name, err)
		}
	}
	return nil
}

// FreeDisk releases the space of FillDisk. It is a no-op after a restart of the process, which gets a new disk.
func (p *Process) FreeDisk() error {
	if p.disk == nil {
		return p.limitFiles("unlimited")
	}
	if err := os.Remove(p.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("free the disk of %s: %w", p.Name, err)
	}
	return nil
}

// filler returns the path of the filling file on the disk of the process, seen from outside.
func (p *Process) filler() string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", p.PID()), p.disk.dir, fillerName)
}

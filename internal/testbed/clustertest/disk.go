package clustertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// disk is a small file system that a process has for itself.
type disk struct {
	dir   string
	bytes int64
	attr  *syscall.SysProcAttr
}

// OwnDisk gives the process a file system of so many bytes at dir, from its next start on. It
// lies in a mount namespace of the process and goes with it. Where that is not allowed, it
// returns an error.
func (p *Process) OwnDisk(dir string, bytes int64) error {
	attr := namespace()
	try := exec.Command("/bin/sh", "-c", mountScript, dir, strconv.FormatInt(bytes, 10), "/bin/true") //nolint:noctx // it ends at once
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

// mountScript mounts the disk at $0, of $1 bytes, and becomes the program.
const mountScript = `mount -t tmpfs -o size="$1" tmpfs "$0" && shift && exec "$@"`

// namespace are the attributes of a process with mounts of its own. Users who are not root get
// them in a user namespace.
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

// command is how the process is started, with its disk.
func (p *Process) command() *exec.Cmd {
	// The process ends by a signal of its own, not with a context.
	if p.disk == nil {
		cmd := exec.Command(p.path, p.args...) //nolint:noctx // see above
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		return cmd
	}
	args := append([]string{"-c", mountScript, p.disk.dir, strconv.FormatInt(p.disk.bytes, 10), p.path}, p.args...)
	cmd := exec.Command("/bin/sh", args...) //nolint:noctx // see above
	attr := *p.disk.attr
	cmd.SysProcAttr = &attr
	return cmd
}

// fileLimit is the largest file, in bytes, that a process without a disk of its own may write
// while its disk counts as full.
const fileLimit = 4 << 20

// limitFiles sets the size of the largest file that the process may write.
func (p *Process) limitFiles(limit string) error {
	cmd := exec.Command("prlimit", "--pid", strconv.Itoa(p.PID()), "--fsize="+limit+":") //nolint:noctx // it ends at once
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("limit the files of %s: %w: %s", p.Name, err, out)
	}
	return nil
}

// fillerName is the file that fills a disk.
const fillerName = "filler"

// FillDisk writes the disk of the process full; FreeDisk ends that. A process without a disk of
// its own cannot write files of more than 4 MiB meanwhile. The process must run.
func (p *Process) FillDisk() error {
	if p.disk == nil {
		return p.limitFiles(strconv.Itoa(fileLimit))
	}
	f, err := os.OpenFile(p.filler(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("fill the disk of %s: %w", p.Name, err)
	}
	defer f.Close() // what it holds is of no worth
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2] // the last bytes, too
		} else if err != nil {
			return fmt.Errorf("fill the disk of %s: %w", p.Name, err)
		}
	}
	return nil
}

// FreeDisk gives the space back that FillDisk took. When the process was started again
// meanwhile, its disk is new and there is nothing to do.
func (p *Process) FreeDisk() error {
	if p.disk == nil {
		return p.limitFiles("unlimited")
	}
	if err := os.Remove(p.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("free the disk of %s: %w", p.Name, err)
	}
	return nil
}

// filler is the file by which the disk of the process is reached from outside.
func (p *Process) filler() string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", p.PID()), p.disk.dir, fillerName)
}

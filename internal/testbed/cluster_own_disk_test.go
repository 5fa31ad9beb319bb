package testbed

import (
	"strings"
	"testing"
)

func TestOwnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// New files only: overwriting a file frees its space first.
	const script = `i=0; while :; do i=$((i+1)); if echo x >"$0"/$i 2>/dev/null; then echo written; else echo full; fi; sleep 0.02; done`
	p := NewProcess(t.TempDir(), "disk", nil, "/bin/sh", "-c", script, dir)
	if err := p.OwnDisk(dir, 16<<20); err != nil {
		t.Skipf("no mounts here: run it as root, or where user namespaces are allowed: %v", err)
	}
	wantFull(t, p)
}

func TestLimitedFiles(t *testing.T) {
	t.Parallel()
	const script = `while :; do if head -c 5000000 /dev/zero >"$0"/file 2>/dev/null; then echo written; else echo full; fi; sleep 0.02; done`
	wantFull(t, NewProcess(t.TempDir(), "limit", nil, "/bin/sh", "-c", script, t.TempDir()))
}

// wantFull starts a process that writes files, and checks that they are written except while its disk is full.
func wantFull(t *testing.T, p *Process) {
	t.Helper()
	must(t, p.Start())
	defer p.Kill()
	for _, step := range []struct {
		do   func() error
		want string
	}{{func() error { return nil }, "written"}, {p.FillDisk, "full"}, {p.FreeDisk, "written"}} {
		must(t, step.do())
		must(t, p.waitLog(t.Context(), step.want, strings.Count(p.Log(), step.want)+3))
	}
}

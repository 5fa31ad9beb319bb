package repository

import (
	"os/exec"
	"strings"
	"testing"
)

// Git tracks no program, and no large file except priors.
func TestNoBuiltFiles(t *testing.T) {
	t.Parallel()
	const maxBytes = 1 << 20
	for _, name := range tracked(t, ".") {
		if name == "restore/prior/bundled/prior.onnx" || name == "priors/base.onnx" {
			continue
		}
		content := read(t, name)
		if len(content) > maxBytes || strings.HasPrefix(content, "\x7fELF") {
			t.Errorf("%s: %d bytes, want a source file of at most %d; remove it and add it to .gitignore", name, len(content), maxBytes)
		}
	}
}

// No file names a path of one machine or a host of one network: the environment provides both.
func TestNoForeignPlaces(t *testing.T) {
	t.Parallel()
	// The expressions are split so that they do not match themselves.
	foreign := strings.Join([]string{
		`/ho` + `me/[a-z]`, `/Use` + `rs/[A-Za-z]`, `(^|[^A-Za-z0-9_.$/}])/(ro` + `ot|wo` + `rk)/`,
		`proxy\.gol` + `ang\.org`, `sum\.gol` + `ang\.org`, `registry\.np` + `mjs`, `repo[0-9]?\.ma` + `ven`,
		`pyp` + `i\.org`, `pyth` + `onhosted`, `deb\.deb` + `ian\.org`, `registry-1\.dock` + `er`,
	}, "|")
	grep := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "grep", "-nIE", foreign)
	grep.Dir = root
	found, err := grep.CombinedOutput()
	if grep.ProcessState.ExitCode() != 1 { // no line matches
		t.Errorf("foreign places (%v):\n%s", err, found)
	}
}

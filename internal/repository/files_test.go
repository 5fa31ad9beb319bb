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
		if name == "internal/restore/prior/bundled/prior.onnx" || name == "priors/base.onnx" {
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
	noLine(t, "foreign places", foreign)
}

// No text tells people to get the package from an index: under the name of the program PyPI has a stranger's, and the package's own name has no files yet.
func TestNoForeignPackage(t *testing.T) {
	t.Parallel()
	noLine(t, "names of packages in an index; name the wheel's file",
		`ddiff(-restore)?\[[a-z]|(pip[3x]? install|uv add|poetry add)[^|&;]*[ '"]ddiff(-restore)?([^-_A-Za-z0-9/.]|$)`)
}

// noLine checks that no line of a tracked file matches an expression.
func noLine(t *testing.T, what, expression string) {
	t.Helper()
	grep := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "grep", "-nIE", expression)
	grep.Dir = root
	found, err := grep.CombinedOutput()
	if grep.ProcessState.ExitCode() != 1 {
		t.Errorf("%s (%v):\n%s", what, err, found)
	}
}

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// cpuVersion is the version of the pinned CPU build.
const cpuVersion = "1.30.0"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// compile builds a shared library at path with the C compiler that the project needs anyway. version is the symbol
// version that it defines, if any; needs are libraries to link.
func compile(t *testing.T, path, version string, needs ...string) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	work := t.TempDir()
	source := filepath.Join(work, "library.c")
	write(t, source, []byte("int ddiff_test(void) { return 29; }\n"))
	arguments := []string{"-shared", "-fPIC", "-nostdlib", "-o", path, source,
		"-Wl,-soname," + filepath.Base(path), "-Wl,--no-as-needed", "-Wl,--unresolved-symbols=ignore-all"}
	if version != "" {
		script := filepath.Join(work, "versions.map")
		write(t, script, []byte("VERS_"+version+" { global: *; };\n"))
		arguments = append(arguments, "-Wl,--version-script="+script)
	}
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if output, err := exec.Command(cc, append(arguments, needs...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, output)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, content, 0o644))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

package deploy

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// TestRelease builds archives and wheels for both architectures, and the wheel for macOS, twice, from clones in two folders, the second time without Go's
// cache, and compares all bytes. It checks what is in the archives, and runs their programs where the environment has neither Go nor a cache,
// that of arm64 under emulation on another machine.
func TestRelease(t *testing.T) {
	if os.Getenv("DDIFF_RELEASE") == "" {
		t.Skip("builds six programs, three of them without Go's cache: make release-test")
	}
	var folders []string
	key := filepath.Join(t.TempDir(), "key")
	execute(t, root, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "release", "-f", key)
	sign := "SIGN=ssh-keygen -q -Y sign -n file -f " + key
	for _, environment := range [][]string{{sign}, {sign, "GOCACHE=" + t.TempDir()}} {
		clone := filepath.Join(t.TempDir(), "a folder of its own")
		execute(t, root, nil, "git", "clone", "--quiet", ".", clone)
		out := filepath.Join(t.TempDir(), "out")
		execute(t, clone, environment, "scripts/release.sh", "0.0.0-test", out)
		folders = append(folders, out)
	}
	names := filesOf(t, folders[0])
	if want := []string{
		"SHA256SUMS", "SHA256SUMS.sig", "ddiff-0.0.0-test-linux-amd64.cdx.json", "ddiff-0.0.0-test-linux-amd64.tar.gz",
		"ddiff-0.0.0-test-linux-arm64.cdx.json", "ddiff-0.0.0-test-linux-arm64.tar.gz", "ddiff-0.0.0-test.provenance.json",
		"ddiff_restore-0.0.0+test-py3-none-macosx_14_0_arm64.whl", "ddiff_restore-0.0.0+test-py3-none-manylinux_2_34_aarch64.whl",
		"ddiff_restore-0.0.0+test-py3-none-manylinux_2_34_x86_64.whl",
	}; !slices.Equal(names, want) {
		t.Fatalf("%q, want %q", names, want)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".whl") {
			wheel, err := zip.OpenReader(filepath.Join(folders[0], name))
			must(t, err)
			for _, want := range []string{"ddiff/licenses/LICENSE", "ddiff/licenses/std@"} {
				if !slices.ContainsFunc(wheel.File, func(f *zip.File) bool { return strings.HasPrefix(f.Name, want) }) {
					t.Errorf("%s lacks %s", name, want)
				}
			}
			checkUnmodified(t, wheel)
			must(t, wheel.Close())
		}
		first, err := os.ReadFile(filepath.Join(folders[0], name))
		must(t, err)
		second, err := os.ReadFile(filepath.Join(folders[1], name))
		must(t, err)
		if !bytes.Equal(first, second) {
			t.Errorf("%s differs between two builds", name)
		}
	}
	execute(t, folders[0], nil, "sha256sum", "--check", "--quiet", "SHA256SUMS")
	checkSignature(t, folders[0], key+".pub")
	checkProvenance(t, folders[0])
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			stem := "ddiff-0.0.0-test-linux-" + arch
			checkArchive(t, folders[0], stem)
			archiveInstalls(t, filepath.Join(folders[0], stem+".tar.gz"))
			archiveRuns(t, filepath.Join(folders[0], stem+".tar.gz"), emulator(t, arch)...)
		})
	}
}

// checkUnmodified checks that the program in a wheel states a commit without changes.
func checkUnmodified(t *testing.T, wheel *zip.ReadCloser) {
	t.Helper()
	for _, f := range wheel.File {
		if path.Base(f.Name) != "ddiff" || f.FileInfo().IsDir() {
			continue
		}
		in, err := f.Open()
		must(t, err)
		data, err := io.ReadAll(in)
		must(t, err)
		info, err := buildinfo.Read(bytes.NewReader(data))
		must(t, err)
		if !slices.Contains(info.Settings, debug.BuildSetting{Key: "vcs.modified", Value: "false"}) {
			t.Errorf("%s: the program was built from changed files: %v", f.Name, info.Settings)
		}
		return
	}
	t.Error("a wheel has no program")
}

// checkSignature verifies the signed digests, and that others are refused.
func checkSignature(t *testing.T, dir, public string) {
	t.Helper()
	key, err := os.ReadFile(public)
	must(t, err)
	signers := filepath.Join(t.TempDir(), "signers")
	must(t, os.WriteFile(signers, append([]byte("release "), key...), 0o644))
	verify := func(text []byte) error {
		cmd := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-n", "file", "-I", "release", "-f", signers, "-s", "SHA256SUMS.sig")
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(text)
		return cmd.Run()
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	must(t, err)
	if err := verify(sums); err != nil {
		t.Errorf("the signature of SHA256SUMS: %v", err)
	}
	if verify(append(sums, '\n')) == nil {
		t.Error("the signature fits other digests")
	}
}

// checkProvenance compares the statement of provenance with the files and the commit.
func checkProvenance(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "ddiff-0.0.0-test.provenance.json"))
	must(t, err)
	statement := &intoto.Statement{}
	must(t, protojson.Unmarshal(data, statement))
	must(t, statement.Validate())
	predicate, err := protojson.Marshal(statement.Predicate)
	must(t, err)
	provenance := &slsa.Provenance{}
	must(t, protojson.Unmarshal(predicate, provenance))
	must(t, provenance.Validate())
	if len(statement.Subject) != 7 {
		t.Errorf("the provenance is about %v", statement.Subject)
	}
	for _, s := range statement.Subject {
		if out := execute(t, dir, nil, "sha256sum", s.Name); !strings.HasPrefix(out, s.Digest["sha256"]+" ") {
			t.Errorf("the provenance of %s has the digest %v", s.Name, s.Digest)
		}
	}
	if commit := strings.TrimSpace(execute(t, root, nil, "git", "rev-parse", "HEAD")); !bytes.Contains(data, []byte(commit)) {
		t.Errorf("the provenance lacks the commit %s", commit)
	}
}

// TestCommitOfRelease: a release needs a checkout without changes, and one tag or a version that does not contradict it.
func TestCommitOfRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join(root, "scripts/release.sh"))
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "scripts"), 0o755))
	file := filepath.Join(dir, "scripts/release.sh")
	must(t, os.WriteFile(file, script, 0o755))
	git := func(args ...string) {
		t.Helper()
		execute(t, dir, nil, "git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.org"}, args...)...)
	}
	wantVersion := func(given, want, refusal string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), file, "--check", given).CombinedOutput()
		if (err == nil) != (refusal == "") || refusal == "" && string(out) != want+"\n" || !strings.Contains(string(out), refusal) {
			t.Errorf("VERSION=%q: %q, %v; want %q or the refusal %q", given, out, err, want, refusal)
		}
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message", "one", "--date", "2026-01-02T03:04:05Z")
	wantVersion("", "", "VERSION=1.2.3-rc1")
	wantVersion("1.2.3-rc1", "1.2.3-rc1", "")
	wantVersion("next", "", "VERSION=next is no version")
	wantVersion("1.2.3; rm", "", "is no version")
	git("tag", "v1.2")
	git("tag", "other")
	wantVersion("", "", "no tag")
	git("tag", "v1.2.3")
	wantVersion("", "1.2.3", "")
	wantVersion("1.2.3", "1.2.3", "")
	wantVersion("1.2.4", "", "has the tag v1.2.3, VERSION is 1.2.4")
	git("tag", "v2.0.0")
	wantVersion("", "", "has the tags v1.2.3 v2.0.0")
	git("tag", "--delete", "v2.0.0")
	must(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o644))
	wantVersion("", "", "the checkout has changes (?? new)")
}

// emulator returns the command line before a program for another architecture; nothing for that of this machine.
func emulator(t *testing.T, arch string) []string {
	t.Helper()
	if arch == runtime.GOARCH {
		return nil
	}
	const libraries = "/usr/aarch64-linux-gnu/lib" // Debian's for cross compilers
	qemu, err := exec.LookPath("qemu-aarch64")
	if _, missing := os.Stat(libraries); arch != "arm64" || err != nil || missing != nil {
		t.Skipf("cannot run a program for %s: needs qemu-aarch64 (Debian: qemu-user) and %s (libc6-arm64-cross), or such a machine", arch, libraries)
	}
	// Files below this folder replace those of the machine. ONNX Runtime crashes with the cpuinfo of another architecture.
	system := t.TempDir()
	must(t, os.Symlink(libraries, filepath.Join(system, "lib")))
	must(t, os.Mkdir(filepath.Join(system, "proc"), 0o755))
	must(t, os.WriteFile(filepath.Join(system, "proc", "cpuinfo"), []byte("processor\t: 0\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid\n"+
		"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n\n"), 0o600))
	return []string{qemu, "-cpu", "cortex-a72", "-L", system}
}

// archiveInstalls runs the lines by which docs/deploy.md installs the archive for systemd, below a folder in place of the root. The links between the documents of
// the archive have targets.
func archiveInstalls(t *testing.T, archive string) {
	t.Helper()
	dir, system := t.TempDir(), t.TempDir()
	for _, sub := range []string{"usr/local", "etc/systemd/system"} {
		must(t, os.MkdirAll(filepath.Join(system, sub), 0o755))
	}
	for _, name := range []string{"nats.creds", "ca.pem", "aws", "admin-token"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must(t, os.Symlink(archive, filepath.Join(dir, "ddiff-0.1.0-linux-amd64.tar.gz")))
	_, section, _ := strings.Cut(read(t, "docs/deploy.md"), "## systemd")
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(section)
	if block == nil {
		t.Fatal("docs/deploy.md does not install the archive")
	}
	lines := regexp.MustCompile(`(?m)^systemctl .*|&& systemctl daemon-reload`).ReplaceAllString(block[1], "")
	execute(t, dir, nil, "bash", "-euc", strings.NewReplacer("/usr/local", system+"/usr/local", " /etc", " "+system+"/etc").Replace(lines))
	for _, name := range []string{
		"usr/local/bin/ddiff", "etc/ddiff/ddiff.env", "etc/ddiff/coordinator/nats.creds", "etc/systemd/system/ddiff-coordinator.service", "etc/systemd/system/ddiff-worker@.service",
	} {
		if _, err := os.Stat(filepath.Join(system, name)); err != nil {
			t.Error(err)
		}
	}
	documents := filepath.Join(system, "usr/local/share/doc/ddiff")
	for _, name := range []string{"charts/ddiff/Chart.yaml", "compose.yaml", "deploy/grafana/fleet.json", "deploy/prometheus/rules.yaml", "examples/demo.yaml"} {
		if _, err := os.Stat(filepath.Join(documents, name)); err != nil {
			t.Error(err)
		}
	}
	code, link := regexp.MustCompile("(?ms)^```.*?\n```$"), regexp.MustCompile(`\]\(([^)#\s:]+)[)#]`)
	must(t, filepath.WalkDir(documents, func(file string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".md" {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range link.FindAllSubmatch(code.ReplaceAll(text, nil), -1) {
			if _, missing := os.Stat(filepath.Join(filepath.Dir(file), string(m[1]))); missing != nil {
				t.Errorf("%s: the link to %s has no target", file, m[1])
			}
		}
		return err
	}))
}

// archiveRuns unpacks an archive and restores an image with an environment that has nothing of this machine.
func archiveRuns(t *testing.T, archive string, emulator ...string) {
	t.Helper()
	unpacked, home := t.TempDir(), t.TempDir()
	execute(t, unpacked, nil, "tar", "--strip-components=1", "-xzf", archive)
	bare := func(args ...string) string {
		line := slices.Concat(emulator, []string{filepath.Join(unpacked, "bin", "ddiff")}, args)
		cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=/nowhere"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("ddiff %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := bare("runtime", "where"); strings.TrimSpace(out) != filepath.Join(unpacked, "lib/ddiff/libonnxruntime.so.1") {
		t.Errorf("the library in use is %s", out)
	}
	if out := bare("prior", "inspect", "bundled:base", "--json"); !strings.Contains(out, `"Name":"base"`) {
		t.Errorf("the larger prior of the release:\n%s", out)
	}
	if out := bare("version", "--json"); !strings.Contains(out, `"tag":""`) || !strings.Contains(out, `"modified":false`) {
		t.Errorf("a commit without a tag is not named as such:\n%s", out)
	}
	out := bare("run", filepath.Join(root, "examples/images/chelsea.png"), "--task", "super_resolution", "--steps", "2", "--size", "64", "--quiet", "--out", filepath.Join(home, "out"))
	if !strings.Contains(out, "done=1 failed=0 dead=0") {
		t.Errorf("the restoration ends with %s", out)
	}
}

// checkArchive checks names, owners and times in an archive, and its SBOM.
func checkArchive(t *testing.T, dir, stem string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, stem+".tar.gz"))
	must(t, err)
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	must(t, err)
	var names []string
	var inside []byte
	for archive := tar.NewReader(compressed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.IsZero() {
			t.Errorf("%s: owner %d %q, time %v", h.Name, h.Uid, h.Uname, h.ModTime)
		}
		if strings.HasSuffix(h.Name, "/ddiff.cdx.json") {
			inside, err = io.ReadAll(archive)
			must(t, err)
		}
	}
	for _, name := range []string{
		"bin/ddiff", "lib/ddiff/base.onnx", "lib/ddiff/libonnxruntime.so.1", "lib/ddiff/LICENSE", "lib/ddiff/ThirdPartyNotices.txt", "share/man/man1/ddiff.1", "share/man/man1/ddiff-run.1",
		"share/bash-completion/completions/ddiff", "share/zsh/site-functions/_ddiff", "share/fish/vendor_completions.d/ddiff.fish",
		"share/doc/ddiff/LICENSE", "share/doc/ddiff/THIRD_PARTY.md", "share/doc/ddiff/prior.md", "share/doc/ddiff/licenses/std@",
		"share/doc/ddiff/licenses/onnxruntime@",
	} {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, stem+"/"+name) }) {
			t.Errorf("%s has no %s", stem, name)
		}
	}
	bill, err := os.ReadFile(filepath.Join(dir, stem+".cdx.json"))
	must(t, err)
	if !bytes.Equal(bill, inside) {
		t.Errorf("the SBOM beside %s is not the one inside", stem)
	}
	var parsed struct {
		SpecVersion string
		Components  []struct{ Name string }
	}
	must(t, json.Unmarshal(bill, &parsed))
	if parsed.SpecVersion != "1.6" || len(parsed.Components) < 50 {
		t.Errorf("%s: SBOM %s with %d components", stem, parsed.SpecVersion, len(parsed.Components))
	}
}

// filesOf returns the sorted names in a folder.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// execute runs a program and returns its output.
func execute(t *testing.T, dir string, environment []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The clients that download archives. Their own settings select registries, mirrors and proxies.
const (
	ClientNPM   = "npm"   // from the npm registry
	ClientPip   = "pip"   // from the Python package index
	ClientMaven = "maven" // from the Maven repository
	ClientCurl  = "curl"  // from the project's release page
)

// program is a package client that the user has installed.
type program struct {
	// commands are equivalent programs with their first arguments; the first installed one is used.
	commands [][]string
	// arguments download the archive into the directory that completes the last argument.
	arguments []string
	// settings are environment variables, such as PIP_REQUIRE_VIRTUALENV=0.
	settings []string
	remedy   string // if no command is installed
}

// killGrace is the time that a cancelled client has to exit.
const killGrace = 5 * time.Second

// download downloads the archive of s into dir, an empty directory, and returns its path. [ErrClientMissing]: the client is not
// installed.
func (s source) download(ctx context.Context, dir string) (string, error) {
	return filepath.Join(dir, s.Archive.Name), s.program().download(ctx, s.Archive.Name, dir)
}

// program returns the client of a source. Of a Python package, it selects the wheel of a platform and of one version of
// CPython, whatever Python runs pip.
func (s source) program() program {
	switch s.Client {
	case ClientNPM:
		return program{
			commands:  [][]string{{"npm"}},
			arguments: []string{"pack", s.Package, "--loglevel=error", "--pack-destination="},
			remedy:    "install Node.js with npm",
		}
	case ClientPip:
		return program{
			commands: [][]string{{"pip3"}, {"pip"}, {"python3", "-m", "pip"}, {"python", "-m", "pip"}},
			arguments: []string{"download", s.Package, "--no-deps", "--only-binary=:all:", "--implementation=cp",
				"--python-version=3.12", "--platform=" + s.Platform, "--disable-pip-version-check", "--no-input", "--quiet", "--dest="},
			settings: []string{"PIP_REQUIRE_VIRTUALENV=0"}, // nothing is installed into a Python
			remedy:   "install Python with pip",
		}
	case ClientCurl:
		return program{
			commands:  [][]string{{"curl"}},
			arguments: []string{"--fail", "--silent", "--show-error", "--location", "--retry", "3", s.Package, "--remote-name", "--output-dir", ""},
			remedy:    "install curl",
		}
	default:
		return program{
			commands:  [][]string{{"mvn"}},
			arguments: []string{"-q", "-B", "dependency:copy", "-Dartifact=" + s.Package, "-DoutputDirectory="},
			remedy:    "install Maven",
		}
	}
}

// download runs the program in dir, into which it downloads the archive name.
func (p program) download(ctx context.Context, name, dir string) error {
	command, err := p.find()
	if err != nil {
		return err
	}
	command = append(command, p.arguments...)
	command[len(command)-1] += dir
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir // an empty directory, so that no project's settings apply
	cmd.Env = append(os.Environ(), p.settings...)
	// The clients are scripts. Cancelling must end their children too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("download %s: %w", name, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("run %s %s: %w: %s", filepath.Base(command[0]), strings.Join(command[1:], " "), err, excerpt(output))
	}
	return nil
}

// find returns the first installed command.
func (p program) find() ([]string, error) {
	var names []string
	for _, command := range p.commands {
		if path, err := exec.LookPath(command[0]); err == nil {
			return append([]string{path}, command[1:]...), nil
		}
		names = append(names, command[0])
	}
	return nil, fmt.Errorf("%w: %s; %s", ErrClientMissing, strings.Join(names, ", "), p.remedy)
}

// excerpt returns the end of a client's output, which names the cause.
func excerpt(output []byte) string {
	const limit = 600
	text := strings.Join(strings.Fields(string(output)), " ")
	if len(text) > limit {
		text = "..." + strings.ToValidUTF8(text[len(text)-limit:], "")
	}
	return text
}

package install

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// client is a package client that the user has installed. Its own configuration selects the registry.
type client struct {
	command   string
	arguments func(dir string) []string // of the command that downloads one package into dir
	remedy    string                    // if the client is not installed
}

// npm downloads a package such as "name@1.2.3".
func npm(spec string) client {
	return client{
		command: "npm",
		arguments: func(dir string) []string {
			return []string{"pack", spec, "--pack-destination", dir, "--loglevel=error"}
		},
		remedy: "install Node.js with npm",
	}
}

// maven downloads an artifact such as "group:artifact:1.2.3:jar".
func maven(artifact string) client {
	return client{
		command: "mvn",
		arguments: func(dir string) []string {
			return []string{"-q", "-B", "dependency:copy", "-Dartifact=" + artifact, "-DoutputDirectory=" + dir}
		},
		remedy: "install Maven",
	}
}

// killGrace is the time that a cancelled client has to exit.
const killGrace = 5 * time.Second

// download runs the client of r in dir and returns the path of the downloaded archive.
func (r release) download(ctx context.Context, dir string, progress Progress) (string, error) {
	alternative := fmt.Sprintf("get %s another way and run: ddiff runtime install --ep %s --from FILE|URL",
		r.archive.name, r.ep)
	program, err := exec.LookPath(r.client.command)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %s, or %s", ErrClientMissing, r.client.command, r.client.remedy, alternative)
	}
	progress.begin(StageDownload)
	arguments := r.client.arguments(dir)
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir = dir // an empty directory, so that no project's settings apply
	// The clients are scripts. Cancelling must end their children too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", fmt.Errorf("download %s: %w", r.archive.name, context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w: %s; if no registry can be reached, %s",
			r.client.command, strings.Join(arguments, " "), err, excerpt(output), alternative)
	}
	return filepath.Join(dir, r.archive.name), nil
}

// excerpt returns the beginning of a client's output, which names the cause.
func excerpt(output []byte) string {
	const limit = 600
	text := strings.Join(strings.Fields(string(output)), " ")
	if len(text) > limit {
		text = text[:limit] + "..."
	}
	return text
}

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

// client is a package client that the user has, with the command that gets one package into a
// directory. Which registry that comes from is the client's configuration.
type client struct {
	command string
	// arguments are for a download into dir.
	arguments func(dir string) []string
	// remedy is how to get the client.
	remedy string
}

// npm gets a package such as "name@1.2.3".
func npm(spec string) client {
	return client{
		command: "npm",
		arguments: func(dir string) []string {
			return []string{"pack", spec, "--pack-destination", dir, "--loglevel=error"}
		},
		remedy: "install Node.js with npm",
	}
}

// maven gets an artifact such as "group:artifact:1.2.3:jar".
func maven(artifact string) client {
	return client{
		command: "mvn",
		arguments: func(dir string) []string {
			return []string{"-q", "-B", "dependency:copy", "-Dartifact=" + artifact, "-DoutputDirectory=" + dir}
		},
		remedy: "install Maven",
	}
}

// killGrace is how long a cancelled client may take to end.
const killGrace = 5 * time.Second

// download runs the client of r in dir and returns the path of the archive it left there.
func (r release) download(ctx context.Context, dir string, progress Progress) (string, error) {
	fromInstead := fmt.Sprintf("get %s another way and run: ddiff runtime install --ep %s --from FILE|URL",
		r.archive.name, r.ep)
	program, err := exec.LookPath(r.client.command)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %s, or %s", ErrClientMissing, r.client.command, r.client.remedy, fromInstead)
	}
	stage := progress.begin(StageDownload, r.archive.size)
	arguments := r.client.arguments(dir)
	// In an empty directory of its own, no project's settings apply, only the user's.
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir = dir
	// The clients are scripts: their children are to end with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", fmt.Errorf("download %s: %w", r.archive.name, context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w: %s; if no registry can be reached, %s",
			r.client.command, strings.Join(arguments, " "), err, beginning(output), fromInstead)
	}
	stage.end()
	return filepath.Join(dir, r.archive.name), nil
}

// beginning is the first part of a client's output, where it names the cause.
func beginning(output []byte) string {
	const limit = 600
	text := strings.Join(strings.Fields(string(output)), " ")
	if len(text) > limit {
		text = text[:limit] + "..."
	}
	return text
}

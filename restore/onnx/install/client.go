package install

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// client is a package client that the user has installed. Its own configuration selects the registry.
type client struct {
	command   string
	arguments []string // download the archive into the directory that completes the last argument
	remedy    string   // if the client is not installed
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
	arguments := slices.Clone(r.client.arguments)
	arguments[len(arguments)-1] += dir
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

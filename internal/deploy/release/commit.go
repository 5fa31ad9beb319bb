package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// commit is the commit of which a release is built.
type commit struct {
	hash string
	tag  string // of a release, such as v0.1.0, or empty
	time time.Time
}

var (
	releaseTag  = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	releaseName = regexp.MustCompile(`^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`)
)

// readCommit returns the commit of the checkout in dir. A checkout with changed or new files is refused.
func readCommit(ctx context.Context, dir string) (commit, error) {
	changes, err := output(ctx, dir, "git", "status", "--porcelain")
	if err != nil {
		return commit{}, err
	}
	if changes != "" {
		first, _, _ := strings.Cut(changes, "\n")
		return commit{}, fmt.Errorf("the checkout has changes (%s); commit or remove them", strings.TrimSpace(first))
	}
	shown, err := output(ctx, dir, "git", "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return commit{}, err
	}
	hash, seconds, _ := strings.Cut(shown, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return commit{}, fmt.Errorf("read the time of commit %s: %w", hash, err)
	}
	tags, err := output(ctx, dir, "git", "tag", "--points-at", "HEAD")
	if err != nil {
		return commit{}, err
	}
	c := commit{hash: hash, time: time.Unix(unix, 0).UTC()}
	for tag := range strings.FieldsSeq(tags) {
		if !releaseTag.MatchString(tag) {
			continue
		}
		if c.tag != "" {
			return commit{}, fmt.Errorf("commit %s has the tags %s and %s; leave one", hash, c.tag, tag)
		}
		c.tag = tag
	}
	return c, nil
}

// version returns the version of the release: that of the tag, or the given one for a commit without a tag.
func (c commit) version(given string) (string, error) {
	switch {
	case c.tag == "" && given == "":
		return "", errors.New("the commit has no tag like v1.2.3; check out a tag, or name the version: make release VERSION=1.2.3-rc1")
	case c.tag != "" && given != "" && "v"+given != c.tag:
		return "", fmt.Errorf("the commit has the tag %s, VERSION is %s; leave VERSION away", c.tag, given)
	case c.tag != "":
		return c.tag[1:], nil
	case !releaseName.MatchString(given):
		return "", fmt.Errorf("VERSION=%s is no version like 1.2.3 or 1.2.3-rc1", given)
	}
	return given, nil
}

// output runs a program in dir and returns its standard output without the last line feed.
func output(ctx context.Context, dir, program string, args ...string) (string, error) {
	return outputWith(ctx, dir, nil, program, args...)
}

// outputWith also sets variables of the environment.
func outputWith(ctx context.Context, dir string, environment []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), environment...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("run %s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("run %s: %w", program, err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

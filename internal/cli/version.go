package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"ddiff/internal/restore/onnx/install"
)

// release is the version of this source tree, as in CHANGELOG.md.
const release = "0.1.0"

// Version returns the version of a build from a release's tag, such as "0.1.0". Any other build comes before the release: it states the
// commit, as in "0.1.0-dev+b52f3dc1b0ff", with the suffix ".dirty" if files were changed, or "0.1.0-dev" where the build does not know its commit.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	if tag := tagOf(info); tag != "" {
		return strings.TrimPrefix(tag, "v")
	}
	commit := settingOf(info, "vcs.revision")
	if commit == "" {
		return release + "-dev"
	}
	v := fmt.Sprintf("%s-dev+%.12s", release, commit)
	if settingOf(info, "vcs.modified") == "true" {
		v += ".dirty"
	}
	return v
}

// tagOf returns the tag of the commit of a build, or "" for a commit without a tag of this release. The Go tool gives
// a commit without a tag a version with the commit in it. A module that a proxy serves has a version and no commit.
func tagOf(info *debug.BuildInfo) string {
	if info == nil || settingOf(info, "vcs.modified") == "true" {
		return ""
	}
	tag, commit := info.Main.Version, settingOf(info, "vcs.revision")
	base, _, _ := strings.Cut(tag, "-")
	if tag != "v"+release && (commit == "" || base != "v"+release || strings.Contains(tag, commit[:min(12, len(commit))])) {
		return ""
	}
	return tag
}

// CommitTime returns the time of the commit of the build, or the start of 1970 where the build does not know it.
func CommitTime() time.Time {
	info, _ := debug.ReadBuildInfo()
	t, err := time.Parse(time.RFC3339, settingOf(info, "vcs.time"))
	if err != nil {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC()
}

// settingOf returns a setting that the Go tool recorded in a program, or "".
func settingOf(info *debug.BuildInfo, key string) string {
	if info != nil {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}

// Build is the origin of a program, as `ddiff version --json` prints it.
type Build struct {
	Version  string     `json:"version"`
	Tag      string     `json:"tag"`    // empty: built without a tag
	Commit   string     `json:"commit"` // empty: built outside of Git
	Time     *time.Time `json:"time"`   // of the commit
	Modified bool       `json:"modified"`
	Go       string     `json:"go"`
	Platform string     `json:"platform"`
	// Pinned are the versions of ONNX Runtime, by execution provider, that `ddiff runtime install` installs.
	Pinned map[string]string `json:"pinned"`
}

// ReportBuild describes a program with this build information.
func ReportBuild(info *debug.BuildInfo) Build {
	r := Build{
		Version: versionOf(info), Tag: tagOf(info), Commit: settingOf(info, "vcs.revision"),
		Modified: settingOf(info, "vcs.modified") == "true",
		Go:       runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Pinned: map[string]string{},
	}
	if t, err := time.Parse(time.RFC3339, settingOf(info, "vcs.time")); err == nil {
		r.Time = &t
	}
	for _, ep := range []string{install.CPU, install.CUDA, install.OpenVINO} {
		if v, err := install.PinnedVersion(ep); err == nil { // other platforms have fewer
			r.Pinned[ep] = v
		}
	}
	return r
}

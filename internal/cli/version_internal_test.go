package cli

import (
	"runtime/debug"
	"testing"
)

// Only a build from an unchanged commit with a tag of this release has the release's version. Every other build names its
// commit.
func TestVersionOfBuild(t *testing.T) {
	t.Parallel()
	const commit = "0123456789abcdef0123456789abcdef01234567"
	build := func(main, revision, modified string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Path: "ddiff", Version: main}}
		if revision != "" {
			info.Settings = []debug.BuildSetting{
				{Key: "vcs.revision", Value: revision}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: modified},
			}
		}
		return info
	}
	named := release + "-dev+" + commit[:12]
	for name, c := range map[string]struct {
		info         *debug.BuildInfo
		version, tag string
	}{
		"tag":             {build("v"+release, commit, "false"), release, "v" + release},
		"candidate":       {build("v"+release+"-rc1", commit, "false"), release + "-rc1", "v" + release + "-rc1"},
		"after a tag":     {build("v0.1.1-0.20260102030405-"+commit[:12], commit, "false"), named, ""},
		"before all tags": {build("v0.0.0-20260102030405-"+commit[:12], commit, "false"), named, ""},
		"pseudo-version":  {build("v"+release+"-0.20260102030405-"+commit[:12], commit, "false"), named, ""},
		"changed tag":     {build("v"+release+"+dirty", commit, "true"), named + ".dirty", ""},
		"foreign tag":     {build("v9.9.9", commit, "false"), named, ""},
		"tarball":         {build("(devel)", "", ""), release + "-dev", ""},
		"module proxy":    {build("v"+release, "", ""), release, "v" + release},
		"no information":  {nil, release + "-dev", ""},
	} {
		r := ReportBuild(c.info)
		if r.Version != c.version || r.Tag != c.tag {
			t.Errorf("%s: version %q, tag %q", name, r.Version, r.Tag)
		}
	}
}

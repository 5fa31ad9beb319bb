package testbed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/storage/s3test"
)

// earlierCommit is the version before the release that this version replaces.
const earlierCommit = "d9b7075"

// earlierProgram returns the ddiff binary of earlierCommit. The first call builds it into the user's cache directory. The
// test is skipped in a checkout without this commit.
func earlierProgram(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	if out, err := exec.CommandContext(ctx, "git", "-C", root, "cat-file", "-e", earlierCommit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("the checkout lacks commit %s, with which this test runs (%v): %s", earlierCommit, err, out)
	}
	cache, err := os.UserCacheDir()
	must(t, err)
	path, err := s3test.BuildOnce(filepath.Join(cache, "ddiff", "ddiff-"+earlierCommit), "ddiff", func(partial string) error {
		return buildCommit(ctx, earlierCommit, partial)
	})
	must(t, err)
	return path
}

// buildCommit builds ddiff from the files of a commit.
func buildCommit(ctx context.Context, commit, path string) error {
	dir, err := os.MkdirTemp("", "ddiff-"+commit+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover is a temporary file
	source := filepath.Join(dir, "source.tar")
	for _, args := range [][]string{
		{"git", "-C", root, "archive", "--output", source, commit}, {"tar", "-x", "-f", source, "-C", dir},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	_, err = goTool(ctx, dir, "build", "-buildvcs=false", "-o", path, "./cmd/ddiff")
	return err
}

// TestUpgrade runs one campaign with programs of this version and of the earlier version together: an earlier
// coordinator with a worker of this version, then a coordinator of this version with one worker of each version. Both
// campaigns restore every item, and their results differ by at most one grey level.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	earlier := earlierProgram(t)
	images := photographs(t, "astronaut", "chelsea", "coffee")
	outputs := make([]string, 2)
	for i, programs := range []struct {
		coordinator string
		workers     []string
		preset      string
	}{
		{earlier, []string{program}, "natural"},
		{program, []string{earlier, program}, "gradient"}, // what natural was in the earlier version
	} {
		c, err := Start(t.Context(), Options{Dir: t.TempDir(), Program: programs.coordinator, Directory: true})
		t.Cleanup(c.Stop)
		must(t, err)
		_, err = c.AddCoordinator(t.Context())
		must(t, err)
		for _, p := range programs.workers {
			c.o.Program = p
			_, err := c.AddWorker(t.Context(), "--batch", "1")
			must(t, err)
		}
		known := []string{"phase_retrieval"} // gradient is unchanged for it
		p := plan{name: "upgrade", tasks: known, preset: programs.preset, steps: 20, prior: filepath.Join(root, "restore", "prior", "bundled", "prior.onnx")}
		file := filepath.Join(t.TempDir(), "upgrade.yaml")
		must(t, p.write(file, images))
		c.o.Program = program // commands
		id, err := c.Output(t.Context(), "submit", file)
		must(t, err)
		id = strings.TrimSpace(id)
		out, err := c.Output(t.Context(), "status", "--watch", id)
		must(t, err)
		want := fmt.Sprintf("done=%d failed=0 dead=0 lost=0", 3*len(known))
		if !strings.Contains(out, want) {
			t.Fatalf("the campaign ended with %q, want %q", out, want)
		}
		outputs[i] = c.Results(id)
		results, err := Results(outputs[i])
		must(t, err)
		workers := map[string]int{}
		for _, r := range results {
			workers[r.Worker]++
		}
		if len(workers) != len(programs.workers) {
			t.Errorf("%d workers restored items, want %d: %v", len(workers), len(programs.workers), workers)
		}
		t.Logf("items by worker: %v", workers)
		c.Stop()
	}
	got, err := Compare(outputs[0], outputs[1])
	must(t, err)
	if got.Levels > 1 || got.Err() != nil { // the versions compute the variances of groups in different ways
		t.Errorf("the results differ: %+v, %v", got, got.Err())
	}
}

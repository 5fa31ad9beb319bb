package report

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
	"ddiff/storage"
)

// largeStore serves the same files for every item, and stores the report in a directory.
type largeStore struct {
	*storage.Dir
	shared map[string][]byte
}

func (s largeStore) Get(_ context.Context, key string) ([]byte, error) {
	return s.shared[path.Base(key)], nil
}

// largeCampaign yields the results of four approaches to each of n/4 measurements.
func largeCampaign(t *testing.T, n int) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for i := range n {
			r := reporttest.Result(t, []string{"hdr", "super_resolution"}[i/2%2], []string{"ddiff", "diffpir"}[i%2],
				fmt.Sprintf("photographs/2026/scene_%05d", i/4), 0, reporttest.Scored(18+float64(i%977)/50, 15, 0.5, 0.001))
			r.Artifacts = map[string]string{}
			for _, file := range []string{manifest.FileTruth, manifest.FileMeasurement, manifest.FileRestored, manifest.FileTrace} {
				r.Artifacts[file] = "not checked here"
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// writeLarge writes the report of n items to a directory with the pictures of all of them. It returns the page.
func writeLarge(t *testing.T, n int) string {
	t.Helper()
	store := reporttest.NewMemory()
	r := reporttest.Result(t, "hdr", "ddiff", "a", 0)
	reporttest.Illustrate(t, store, &r, 1)
	dir := t.TempDir()
	to, err := storage.NewDir(dir)
	reporttest.Must(t, err)
	shared := largeStore{to, make(map[string][]byte)}
	picture := filepath.Join(dir, "pictures")
	reporttest.Must(t, os.MkdirAll(filepath.Join(dir, manifest.ItemsFolder), 0o755))
	reporttest.Must(t, os.Mkdir(picture, 0o755))
	for key, data := range store.Files {
		shared.shared[path.Base(key)] = data
		reporttest.Must(t, os.WriteFile(filepath.Join(picture, path.Base(key)), data, 0o644))
	}
	var results []manifest.Result
	for r, err := range largeCampaign(t, n) {
		err = errors.Join(err, os.Symlink(picture, filepath.Join(dir, manifest.ItemsFolder, r.Item.ID)))
		reporttest.Must(t, err)
		results = append(results, r)
	}
	start := time.Now()
	if _, err := Write(t.Context(), shared, testCampaign(), reporttest.Stream(results)); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	index := filepath.Join(dir, KeyPage)
	info, err := os.Stat(index)
	reporttest.Must(t, err)
	t.Logf("report of %d items: %.1f s, page of %.1f MB", n, took.Seconds(), float64(info.Size())/1e6)
	if info.Size() > 30e6 || took > time.Minute {
		t.Errorf("the page has %d bytes after %v", info.Size(), took)
	}
	return index
}

// TestPageOf20000Items opens a large page from disk and searches in it.
func TestPageOf20000Items(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a report of 20,000 items")
	}
	chromium(t)
	index := writeLarge(t, 20_000)
	addProbe(t, index, `
  out.cards = document.querySelectorAll(".item").length;
  const form = document.getElementById("toolbar");
  set(form.elements.q, "scene_04999");
  out.found = names() + " " + document.getElementById("shown").textContent;`)
	// The page's security policy blocks all requests but for files, and the browser reports a blocked one on its console.
	document := browse(t, index, "")
	found := strings.Repeat("photographs/2026/scene_04999,", 3) + "photographs/2026/scene_04999 4 of 20000 items match"
	wantStates(t, document, map[string]string{"cards": "24", "found": found})
}

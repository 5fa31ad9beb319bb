package coordinator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/internal/restore/haar"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
)

// bundle writes a latent prior around the bundled one, and returns its folder and its archive.
func bundle(t *testing.T) (dir string, archive []byte) {
	t.Helper()
	pixels, err := prior.Read(prior.Bundled)
	must(t, err)
	dir = filepath.Join(t.TempDir(), "latent")
	must(t, haar.Write(dir, pixels, haar.Config{}))
	archive, err = prior.Read(dir)
	must(t, err)
	return dir, archive
}

// TestPriorAboveLimitOfStore submits a bundle to a store with a limit below and at its size.
func TestPriorAboveLimitOfStore(t *testing.T) {
	t.Parallel()
	dir, archive := bundle(t)
	for _, short := range []int64{1, 0} {
		tc := newTestCluster(t, 1)
		tc.store.MaxBytes = int64(len(archive)) - short
		spec := tc.spec("latent")
		spec.Prior, spec.Preset, spec.Methods = dir, "ffhq", []string{"latent_ddiff"}
		c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
		must(t, err)
		tc.lead()
		tc.work(c.ID)
		if short == 0 {
			s := tc.awaitPhase(c.ID, record.PhaseFinished)
			if s.Campaign.Prior.Key == "" || s.Status.Counts.Done != 2 {
				t.Errorf("prior %+v, %+v", s.Campaign.Prior, s.Status.Counts)
			}
			continue
		}
		s := tc.awaitPhase(c.ID, record.PhaseRejected)
		want := fmt.Sprintf("object too large: %d bytes, at most %d are allowed", len(archive), len(archive)-1)
		if got := s.Campaign.Reason; !strings.HasPrefix(got, "copy prior "+dir+" into the store: ") || !strings.HasSuffix(got, want) {
			t.Errorf("reason %q, want %q at its end", got, want)
		}
	}
}

// modelSources records the addresses that it reads, as files.
type modelSources struct{ read chan string }

func (m modelSources) Get(ctx context.Context, path string) ([]byte, error) {
	m.read <- path
	_, name, _ := strings.Cut(path, "://")
	return manifest.Files{}.Get(ctx, name)
}

// TestModelsHaveLimitOfTheirOwn submits a prior at an address. It is read with the sources of models, not with those of
// datasets, whose limit is smaller.
func TestModelsHaveLimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	_, archive := bundle(t)
	file := filepath.Join(t.TempDir(), "latent.tar")
	must(t, os.WriteFile(file, archive, 0o644))
	models := modelSources{make(chan string, 1)}
	tc := newTestCluster(t, 1)
	spec := tc.spec("latent")
	spec.Prior, spec.Preset, spec.Methods = "s3://"+file, "ffhq", []string{"latent_ddiff"}
	c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	tc.leadWith(func(c *coordinator.Config) { c.Models = models })
	tc.work(c.ID)
	tc.awaitPhase(c.ID, record.PhaseFinished)
	if got := <-models.read; got != spec.Prior {
		t.Errorf("read %s", got)
	}
}

package gpuworker_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/gpuworker"
	"ddiff/restore/prior"
	"ddiff/restore/prior/haar"
)

// TestWorkerFetchesBundle: a worker gets a latent prior from the store as one archive and checks its parts.
func TestWorkerFetchesBundle(t *testing.T) {
	t.Parallel()
	pixels, err := prior.Read(prior.Bundled)
	must(t, err)
	dir := filepath.Join(t.TempDir(), "latent")
	must(t, haar.Write(dir, pixels, haar.Config{}))
	data, err := prior.Read(dir)
	must(t, err)
	c := newCluster(t)
	p := c.prior(data)
	engine, done, err := c.engines().Acquire(t.Context(), p)
	must(t, err)
	defer done()
	if got := engine.Prior(); got.SHA256 != p.SHA256 || !got.Space().Latent() {
		t.Errorf("the engine has the prior %s, latent %v", got.SHA256, got.Space().Latent())
	}

	// An archive whose decoder is the encoder of another bundle fits its card no more.
	encoder, err := os.ReadFile(filepath.Join(dir, "encoder.onnx"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "decoder.onnx"), encoder, 0o644))
	if _, err := prior.Read(dir); !errors.Is(err, prior.ErrBundle) {
		t.Errorf("exchanged file: %v", err)
	}
	at := strings.Index(string(data), "ConvTranspose")
	data[at] ^= 1
	if _, _, err := c.engines().Acquire(t.Context(), c.prior(data)); !errors.Is(err, gpuworker.ErrPriorFile) || !errors.Is(err, prior.ErrBundle) {
		t.Errorf("altered part: %v", err)
	}
}

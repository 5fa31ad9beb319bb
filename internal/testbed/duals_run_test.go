package testbed

import (
	"bytes"
	"strings"
	"testing"

	"ddiff/restore/onnx/onnxtest"
)

// The readings of the dual variable agree for an exact autoencoder, and pixel is nearest to the posterior mean for one that
// rounds its latents.
func TestDuals(t *testing.T) {
	t.Parallel()
	panels, err := measureDuals(t.Context(), onnxtest.Runtime(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkDuals(panels); err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	writeDuals(&out, panels)
	if n := strings.Count(out.String(), "\n"); n != 2+4*4 {
		t.Errorf("%d lines, want 18\n%s", n, out.String())
	}
	if svg, err := drawDuals(panels).SVG(); err != nil || !bytes.Contains(svg, []byte("rounded latents")) {
		t.Errorf("the figure lacks a panel: %v", err)
	}
	panels[2].distance["pixel"][dualSteps-1] = 10
	if checkDuals(panels) == nil {
		t.Error("a reading in another order passes")
	}
}

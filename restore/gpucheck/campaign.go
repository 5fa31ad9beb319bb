package gpucheck

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// shareField matches the share of light tasks, of which speedTask is one, in the last line of ddiff bench.
var shareField = regexp.MustCompile(`\bshare_light=([0-9.]+)`)

// runCampaign runs ddiff bench on the device with the largest batch size.
func runCampaign(ctx context.Context, cfg Config, self Self, r *Report) error {
	n := cfg.lastBatch()
	cmd := self(ctx, "bench", "--device", cfg.Device, "--onnxruntime", cfg.Library,
		"--images", filepath.Dir(cfg.Photographs[0]), "--task", speedTask,
		"--batch", strconv.Itoa(n), "--items", strconv.Itoa(2*n), "--size", strconv.Itoa(cfg.Size),
		"--steps", strconv.Itoa(cfg.Steps), "--threads", strconv.Itoa(cfg.Threads))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run ddiff bench: %w: %s", err, excerpt(stderr.String()))
	}
	m := shareField.FindStringSubmatch(stdout.String())
	if m == nil {
		return fmt.Errorf("run ddiff bench: no share_light in its output: %s", excerpt(stdout.String()))
	}
	share, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return fmt.Errorf("run ddiff bench: share_light: %w", err)
	}
	r.Campaign = &Campaign{Task: speedTask, Share: map[int]float64{n: share}}
	return nil
}

package gpucheck

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// shareField matches the shares in the last line of ddiff bench.
var shareField = regexp.MustCompile(`\bshare_b(\d+)=([0-9.]+)`)

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
	c := &Campaign{Task: speedTask, Share: map[int]float64{}}
	for _, m := range shareField.FindAllStringSubmatch(stdout.String(), -1) {
		batch, err := strconv.Atoi(m[1])
		if err != nil {
			return err
		}
		if c.Share[batch], err = strconv.ParseFloat(m[2], 64); err != nil {
			return err
		}
	}
	if _, ok := c.Share[n]; !ok {
		return fmt.Errorf("run ddiff bench: no share_b%d in its output: %s", n, excerpt(stdout.String()))
	}
	r.Campaign = c
	return nil
}

package gpucheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/prior/randomnet"
	"ddiff/restore/raster"
)

// torchBound is the largest difference of PyTorch's output in float32 from ddiff's for equal networks.
const torchBound = 1e-3

// torchAbsent is the exit code of the timing in Python when PyTorch cannot run on this machine.
const torchAbsent = 77

// timeTorch times the random network in PyTorch with the same weights, and compares the outputs.
func timeTorch(ctx context.Context, s *session, r *Report) (err error) {
	d := s.cfg.device()
	device := d.Provider
	switch {
	case s.cfg.Python == "":
		return skipped{"no Python interpreter with PyTorch is named; use --torch"}
	case d.NVIDIA():
		device = "cuda:" + strconv.Itoa(d.Index)
	case d.Provider != onnxruntime.ProviderCPU:
		return skipped{"PyTorch does not support " + d.Provider}
	}
	dir, err := os.MkdirTemp("", "ddiff-torch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := s.writeNetwork(ctx, dir); err != nil {
		return err
	}
	tools, err := filepath.Abs(s.cfg.Tools)
	if err != nil {
		return err
	}
	batches := make([]string, len(s.cfg.Batches))
	for i, n := range s.cfg.Batches {
		batches[i] = strconv.Itoa(n)
	}
	cmd := exec.CommandContext(ctx, s.cfg.Python, "-m", "ddiff_torch.unet_bench", "--network", dir, "--device", device,
		"--batches", strings.Join(batches, ","), "--seconds", fmt.Sprint(s.cfg.Measure.Seconds()), "--threads", strconv.Itoa(s.cpu.Threads()))
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = tools, &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == torchAbsent:
		return skipped{excerpt(stderr.String())}
	case err != nil:
		return fmt.Errorf("run PyTorch: %w: %s", err, excerpt(stderr.String()))
	}
	t := &Torch{}
	if err := json.Unmarshal(stdout.Bytes(), t); err != nil {
		return fmt.Errorf("run PyTorch: parse its output %q: %w", excerpt(stdout.String()), err)
	}
	r.Torch = t
	return withinBound(t.MaxAbs, torchBound, "PyTorch's output in float32: the difference")
}

// writeNetwork writes the random network for PyTorch: architecture, weights, an input and ddiff's output for it.
func (s *session) writeNetwork(ctx context.Context, dir string) error {
	n, p, err := s.random()
	if err != nil {
		return err
	}
	net, err := reference(s.cpu).compile(p, 1, s.cfg.Random.Size)
	if err != nil {
		return err
	}
	defer net.Close()
	if err := net.Run(ctx); err != nil {
		return err
	}
	for name, t := range map[string]*onnxruntime.Tensor{"x.npy": net.X, "y.npy": net.Y} {
		file, err := raster.EncodeNPY(t.Dims(), t.F32)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), file, 0o644); err != nil {
			return err
		}
	}
	c := s.cfg.Random
	described, err := json.Marshal(map[string]any{
		"size": c.Size, "channels": c.Channels, "base": c.Base, "multipliers": c.Multipliers, "blocks": c.Blocks,
		"attention": c.Attention, "head_channels": randomnet.HeadChannels, "time": net.T.I64[0],
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "network.json"), described, 0o644); err != nil {
		return err
	}
	w, err := os.Create(filepath.Join(dir, "weights.safetensors"))
	if err != nil {
		return err
	}
	return errors.Join(n.WriteSafetensors(w), w.Close())
}

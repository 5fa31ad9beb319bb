package randomnet_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/prior/randomnet"
	"ddiff/restore/raster"
)

// TestAgainstTorch: PyTorch computes the same with the same weights. With DDIFF_TORCH_DEVICE=cuda:0, it is the published network on that
// device, and the log has PyTorch's times.
func TestAgainstTorch(t *testing.T) {
	t.Parallel()
	cfg, device := randomnet.Small(32), cmp.Or(os.Getenv("DDIFF_TORCH_DEVICE"), "cpu")
	if device != "cpu" {
		cfg = randomnet.FFHQ()
	}
	dir := t.TempDir()
	write := func(name string, data []byte, err error) {
		t.Helper()
		must(t, errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o644)))
	}
	net, err := load(t, cfg).Compile(onnxtest.Runtime(t), 1, cfg.Size, cfg.Size, onnxruntime.FP32)
	must(t, err)
	defer net.Close()
	noise.Normal(net.X.F32, noise.Key{1}, noise.Start, 0, 1)
	net.T.I64[0] = 250
	must(t, net.Run(t.Context()))
	for name, tensor := range map[string]*onnxruntime.Tensor{"x.npy": net.X, "y.npy": net.Y} {
		data, err := raster.EncodeNPY(tensor.Dims(), tensor.F32)
		write(name, data, err)
	}
	data, err := json.Marshal(map[string]any{
		"size": cfg.Size, "channels": 3, "base": cfg.Base, "multipliers": cfg.Multipliers, "blocks": 1,
		"attention": cfg.Attention, "head_channels": randomnet.HeadChannels, "time": net.T.I64[0],
	})
	write("network.json", data, err)
	weights, err := os.Create(filepath.Join(dir, "weights.safetensors"))
	must(t, err)
	must(t, errors.Join(randomnet.New(cfg).WriteSafetensors(weights), weights.Close()))
	cmd := exec.CommandContext(t.Context(), cmp.Or(os.Getenv("PYTHON"), "/usr/bin/python3"), "-m", "ddiff_torch.unet_bench", "--network", dir,
		"--device", device, "--batches", "1,4,8,16", "--seconds", "0")
	cmd.Dir, cmd.Stderr = filepath.Join("..", "..", "..", "tools"), os.Stderr
	out, err := cmd.Output()
	var got struct {
		MaxAbs float64 `json:"max_abs"`
	}
	must(t, errors.Join(err, json.Unmarshal(out, &got)))
	t.Logf("%s", out)
	if !(got.MaxAbs > 0 && got.MaxAbs < 1e-3) {
		t.Errorf("the outputs differ by %g", got.MaxAbs)
	}
}

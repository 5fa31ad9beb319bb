package metric

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/trial"
	"ddiff/restore/onnx"
)

// MinDigest is the number of hexadecimal digits of a network's digest in its metric's id.
const MinDigest = 8

// unclippedVersion ends the version of a network's metric without clipping.
const unclippedVersion = "_unclipped"

// Network is a metric in an ONNX file, such as LPIPS (Zhang et al., The unreasonable effectiveness of deep features as a
// perceptual metric, CVPR 2018): inputs x and y [N, 3, H, W] in [-1, 1], output distance [N]. The command lpips of
// tools/ddiff_export writes such files. Its metadata has the name and the version of the metric and the smallest side of an image.
// It is safe for concurrent use; one pair is scored at a time.
type Network struct {
	// File is the path, SHA256 the digest of the file with its external data.
	File, SHA256 string
	// Name is the name of the metric, such as "lpips_alex", Version that of its definition.
	Name    string
	Version int
	// MinSize is the smallest side of an image in pixels.
	MinSize int

	mu      sync.Mutex
	session *onnxruntime.Session
	height  int // of the tensors
	width   int
	in, out []*onnxruntime.Tensor
}

// OpenNetwork reads, checks and compiles the network of a file. Errors name the file, and wrap [ErrNetwork], or an error of
// package onnx. The caller must close the network.
func OpenNetwork(ctx context.Context, rt *onnxruntime.Runtime, path string) (*Network, error) {
	data, err := modelfile.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return open(ctx, rt, path, data)
}

// Try is the [trial.Check] of a metric.
func Try(ctx context.Context, rt *onnxruntime.Runtime, f trial.File) error {
	n, err := open(ctx, rt, f.Name, f.Data)
	if err != nil {
		return err
	}
	grey := raster.New(3, n.MinSize, n.MinSize)
	_, err = n.Score(ctx, grey, grey)
	return err
}

func open(ctx context.Context, rt *onnxruntime.Runtime, path string, data []byte) (*Network, error) {
	sum := sha256.Sum256(data)
	n := &Network{File: path, SHA256: hex.EncodeToString(sum[:])}
	m, err := modelfile.ReadModel(data)
	if err == nil {
		err = n.describe(m)
	}
	if err == nil {
		first := trial.First{Data: data}
		if err := first.Run(ctx, rt, trial.File{Kind: "metric", Name: path, SHA256: n.SHA256, Weights: 4 * int64(m.Parameters()), Unusable: ErrNetwork}); err != nil {
			return nil, err
		}
		data, err = proto.Marshal(m.Proto())
	}
	if err == nil {
		if n.session, err = rt.NewSession(data, []string{"x", "y"}, []string{"distance"}); err != nil {
			err = fmt.Errorf("%w: %w", ErrNetwork, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("metric %s: %w", path, err)
	}
	return n, nil
}

// ID is the versioned id of the metric, such as "lpips_alex@1:1f2e3d4c": networks with other weights are other metrics.
func (n *Network) ID() string {
	return fmt.Sprintf("%s@%d:%s", n.Name, n.Version, n.SHA256[:MinDigest])
}

// UnclippedID is the versioned id of [Network.ScoreUnclipped], such as "lpips_alex@1_unclipped:1f2e3d4c".
func (n *Network) UnclippedID() string {
	return fmt.Sprintf("%s@%d%s:%s", n.Name, n.Version, unclippedVersion, n.SHA256[:MinDigest])
}

// describe reads the metadata and checks the inputs and outputs.
func (n *Network) describe(m *modelfile.Model) error {
	meta := m.Metadata()
	if kind := meta["ddiff.kind"]; kind != "metric" {
		return fmt.Errorf("%w: its metadata entry ddiff.kind is %q, want metric; export it with ddiff_export lpips", ErrNetwork, kind)
	}
	n.Name = meta["ddiff.metric"]
	if n.Name == "" || strings.Trim(n.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return fmt.Errorf("%w: its metadata entry ddiff.metric is %q, want a name such as lpips_alex; export it again", ErrNetwork, n.Name)
	}
	for key, into := range map[string]*int{"metric_version": &n.Version, "min_size": &n.MinSize} {
		v, err := strconv.Atoi(meta["ddiff."+key])
		if err != nil || v < 1 {
			return fmt.Errorf("%w: its metadata entry ddiff.%s is %q, want a positive number; export it again", ErrNetwork, key, meta["ddiff."+key])
		}
		*into = v
	}
	if r := meta["ddiff.range"]; r != "-1..1" {
		return fmt.Errorf("%w: its metadata entry ddiff.range is %q, only -1..1 is supported", ErrNetwork, r)
	}
	in, out := m.Inputs(), m.Outputs()
	if len(in) != 2 || len(out) != 1 || out[0].Name != "distance" || out[0].DType != onnx.Float {
		return fmt.Errorf("%w: it has %d inputs and %d outputs, want x, y and the float output distance", ErrNetwork, len(in), len(out))
	}
	for i, name := range []string{"x", "y"} {
		p := in[i]
		if p.Name != name || p.DType != onnx.Float || len(p.Dims) != 4 || p.Dims[1] != 3 || p.Dims[2] >= 0 || p.Dims[3] >= 0 {
			return fmt.Errorf("%w: input %d is %s %v, want %s, float [N, 3, H, W] with free height and width", ErrNetwork, i+1, p.Name, p.Dims, name)
		}
	}
	return nil
}

// Score returns the distance between two images of equal shape with 3 channels, or 1, which counts three times, clipped to [-1, 1]; 0 for identical images,
// and not limited above. Errors are [ErrShape], [ErrTooSmall], [raster.ErrNotFinite] and errors of the runtime.
func (n *Network) Score(ctx context.Context, x, y *raster.Image) (float64, error) {
	return n.score(ctx, x, y, func(v float32) float32 { return min(1, max(-1, v)) })
}

// ScoreUnclipped is [Network.Score] without clipping.
func (n *Network) ScoreUnclipped(ctx context.Context, x, y *raster.Image) (float64, error) {
	return n.score(ctx, x, y, func(v float32) float32 { return v })
}

func (n *Network) score(ctx context.Context, x, y *raster.Image, value func(float32) float32) (float64, error) {
	if err := Check(x, y); err != nil {
		return 0, fmt.Errorf("%s: %w", n.Name, err)
	}
	if x.Channels != 1 && x.Channels != 3 {
		return 0, fmt.Errorf("%s: image of %d channels, must be 1 or 3: %w", n.Name, x.Channels, ErrUndefined)
	}
	if min(x.Height, x.Width) < n.MinSize {
		return 0, fmt.Errorf("%s: image of %dx%d pixels, must be at least %dx%d: %w", n.Name, x.Width, x.Height, n.MinSize, n.MinSize, ErrTooSmall)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.resize(x.Height, x.Width); err != nil {
		return 0, fmt.Errorf("%s: %w", n.Name, err)
	}
	for i, img := range []*raster.Image{x, y} {
		for at := range n.in[i].F32 {
			n.in[i].F32[at] = value(img.Pix[at%len(img.Pix)])
		}
	}
	if err := n.session.Run(ctx, n.in, n.out); err != nil {
		return 0, fmt.Errorf("%s: %w", n.Name, err)
	}
	d := float64(n.out[0].F32[0])
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return 0, fmt.Errorf("%s: the network returns %v: %w", n.Name, d, ErrNetwork)
	}
	return d, nil
}

// resize allocates the tensors of one pair.
func (n *Network) resize(height, width int) error {
	if n.height == height && n.width == width {
		return nil
	}
	n.free()
	for range 2 {
		t, err := onnxruntime.NewTensor(onnx.Float, 1, 3, height, width)
		if err != nil {
			return err
		}
		n.in = append(n.in, t)
	}
	t, err := onnxruntime.NewTensor(onnx.Float, 1)
	if err != nil {
		return err
	}
	n.out, n.height, n.width = []*onnxruntime.Tensor{t}, height, width
	return nil
}

func (n *Network) free() {
	onnxruntime.CloseTensors(n.in)
	onnxruntime.CloseTensors(n.out)
	n.in, n.out, n.height, n.width = nil, nil, 0, 0
}

// Close releases the session.
func (n *Network) Close() error {
	n.free()
	return n.session.Close()
}

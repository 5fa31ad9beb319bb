package results

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"ddiff/coordinator/score"
	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/restore/metric"
	"ddiff/restore/onnx/onnxruntime"
)

// The metrics of --metric that need a file: of clipped and of unclipped images.
const (
	lpipsMetric    = "lpips"
	lpipsUnclipped = "lpips@unclipped"
)

// networkMetrics are metrics in ONNX files, and the runtime that evaluates them.
type networkMetrics struct {
	runtime *onnxruntime.Runtime
	opened  []*metric.Network
}

// open opens the file of a metric, and the runtime for the first one. An unusable file is metric.ErrNetwork.
func (n *networkMetrics) open(o cli.ComputeOptions, kind, file string) (score.Metric, error) {
	if n.runtime == nil {
		rt, err := o.Open(slog.New(slog.DiscardHandler))
		if err != nil {
			return score.Metric{}, err
		}
		n.runtime = rt
	}
	m, err := metric.OpenNetwork(n.runtime, file)
	if errors.Is(err, fs.ErrNotExist) {
		return score.Metric{}, cli.Usage(fmt.Errorf("score: --metric %s:%s: no such file; export one with ddiff_export lpips", kind, redact.Address(file)))
	}
	if err != nil {
		return score.Metric{}, fmt.Errorf("score: %w", err)
	}
	n.opened = append(n.opened, m)
	out := score.Metric{
		Head:    manifest.ScoreHead{Metric: m.ID(), SHA256: m.SHA256, File: filepath.Base(file), Version: cli.Version()},
		Compare: m.Score,
	}
	if kind == lpipsUnclipped {
		out.Head.Metric, out.Unclipped, out.Compare = m.UnclippedID(), true, m.ScoreUnclipped
	}
	return out, nil
}

// close releases the networks and the runtime.
func (n *networkMetrics) close() {
	for _, m := range n.opened {
		m.Close() //nolint:errcheck // nothing was written
	}
	if n.runtime != nil {
		n.runtime.Close()
	}
}

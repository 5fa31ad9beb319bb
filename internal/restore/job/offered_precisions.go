package job

import (
	"fmt"
	"strings"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// Offer returns the precisions in which a runtime computes a network, and whole those of [onnxruntime.Runtime.Whole], for the configuration of a
// fleet and the heartbeat of a worker.
func Offer(rt *onnxruntime.Runtime) (all, whole []parameter.Precision) {
	whole = []parameter.Precision{} // not nil, which is all
	all = rt.Precisions()
	for _, p := range all {
		if rt.Whole(p) {
			whole = append(whole, p)
		}
	}
	return all, whole
}

// precision returns the precision that an item fixes, or "" if it leaves it to the engine. The error is ErrUnsupported if
// the device does not compute in it.
func (s Loader) precision(it *item.Item) (onnxruntime.Precision, error) {
	if it.Precision == "" {
		return "", nil
	}
	p, err := onnxruntime.ParsePrecision(string(it.Precision))
	if err != nil {
		return "", Unsupported(fmt.Errorf("item %s: %w", it.Name, err))
	}
	if rt := s.Engine.Runtime(); !rt.Computes(p) {
		return "", MissingPrecision(it.Precision, rt.Precisions())
	}
	return p, nil
}

// MissingPrecision is the ErrUnsupported of a worker that computes in other precisions.
func MissingPrecision(need parameter.Precision, offered []parameter.Precision) error {
	names := strings.ReplaceAll(strings.Trim(fmt.Sprint(offered), "[]"), " ", " and ")
	return fmt.Errorf("%w: it has the precision %s, this worker computes in %s", ErrUnsupported, need, names)
}

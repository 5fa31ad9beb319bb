package main

import (
	"errors"
	"fmt"
	"io/fs"

	"ddiff/coordinator/shard"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/restore/onnx"
	"ddiff/restore/prior"
)

// priorError wraps errPrior around errors of a network that cannot be used.
func priorError(err error) error {
	if errors.Is(err, prior.ErrGraph) || errors.Is(err, prior.ErrBundle) {
		return fmt.Errorf("%w: %w", errPrior, err)
	}
	return err
}

// openPrior opens a prior. Its errors wrap errPrior.
func openPrior(path string) (*prior.Prior, error) {
	p, err := prior.Open(path)
	part := errors.Is(err, prior.ErrBundle) || errors.Is(err, onnx.ErrExternal) // the error names it
	if errors.Is(err, fs.ErrNotExist) && !part {
		return nil, fmt.Errorf("%w %s: no such file; use --prior bundled, the path of an ONNX file or the folder of a bundle", errPrior, redact.Address(path))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPrior, err)
	}
	return p, nil
}

// openPriorOf opens the prior of a campaign and checks the campaign's settings against its schedule.
func openPriorOf(spec *manifest.Spec, c shard.Catalogue) (*prior.Prior, error) {
	p, err := openPrior(spec.Prior)
	if err != nil {
		return nil, err
	}
	if err := c.Check(spec, &p.Description); err != nil {
		return nil, usage(err)
	}
	return p, nil
}

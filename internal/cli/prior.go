package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"ddiff/internal/redact"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// PriorError wraps ErrPrior around errors of a network that cannot be used.
func PriorError(err error) error {
	if errors.Is(err, prior.ErrGraph) || errors.Is(err, prior.ErrBundle) {
		return fmt.Errorf("%w: %w", ErrPrior, err)
	}
	return err
}

// OpenPrior opens a prior. Its errors wrap ErrPrior.
func OpenPrior(path string) (*prior.Prior, error) {
	p, err := prior.Open(path)
	part := errors.Is(err, prior.ErrBundle) || errors.Is(err, modelfile.ErrExternal) // the error names it
	if errors.Is(err, fs.ErrNotExist) && !part {
		return nil, fmt.Errorf("%w %s: no such file; use --prior bundled, bundled:base, the path of an ONNX file or the folder of a bundle", ErrPrior, redact.Address(path))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPrior, err)
	}
	return p, nil
}

// OpenPriorOf opens the prior of a campaign, and checks the campaign's settings against its schedule and its sizes. Measurements and images that are padded have
// sizes of their own. Errors are those of OpenPrior and [prior.ErrSize].
func OpenPriorOf(spec *manifest.Spec, c manifest.Catalogue) (*prior.Prior, error) {
	p, err := OpenPrior(spec.Prior)
	if err != nil {
		return nil, err
	}
	c.Prior, c.New = &p.Description, true
	if err := spec.Validate(c); err != nil {
		return nil, Usage(err)
	}
	tile, _, err := spec.Tiles(p.Card.TileSide(), p.Card.MultipleOf)
	if err == nil && spec.Dataset.Fit != item.FitPad && !spec.Dataset.Measurements {
		err = p.Takes(spec.Dataset.Size, spec.Dataset.Size, tile)
	}
	return p, err
}

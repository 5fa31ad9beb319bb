package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"ddiff/manifest"
	"ddiff/restore/onnx"
)

// precisionName returns the name in campaign files of a value of --precision, which may be that of a worker's flag, such as
// fp16. Validation of the campaign refuses other words.
func precisionName(text string) manifest.Precision {
	if p, err := onnx.ParsePrecision(text); err == nil {
		text = p.Name()
	}
	return manifest.Precision(text)
}

// addCampaignPrecision adds the flag of the precision of a campaign.
func addCampaignPrecision(f *pflag.FlagSet, p *manifest.Precision) {
	f.StringVar((*string)(p), "precision", "",
		"arithmetic of the score network: "+words(append(manifest.Precisions(), manifest.PrecisionAuto))+" (default: the device's, float32)")
}

// fixPrecision replaces the precision auto of a campaign by the suggestion of the device. The error is onnx.ErrPrecision if
// the device does not compute in the campaign's precision.
func fixPrecision(spec *manifest.Spec, rt *onnx.Runtime) error {
	if spec.Precision == "" {
		return nil
	}
	if spec.Precision == manifest.PrecisionAuto {
		spec.Precision = manifest.Precision(rt.AutoPrecision().Name())
		return nil
	}
	p, err := onnx.ParsePrecision(string(spec.Precision))
	if err != nil {
		return err
	}
	if !rt.Computes(p) {
		return fmt.Errorf("%w: %s cannot compute the network in %s; it computes in %s: choose one of them, or another --device",
			onnx.ErrPrecision, rt.Provider(), spec.Precision, words(precisionNames(rt)))
	}
	return nil
}

func precisionNames(rt *onnx.Runtime) []string {
	var out []string
	for _, p := range rt.Precisions() {
		out = append(out, p.Name())
	}
	return out
}

// notePrecision names the choice for auto.
func (o runOptions) notePrecision(stderr io.Writer, spec *manifest.Spec, rt *onnx.Runtime) {
	if !o.quiet && !o.json {
		fmt.Fprintf(stderr, "note: precision auto is %s on %s\n", spec.Precision, rt.Provider())
	}
}

// planPrecision is fixPrecision for a plan, which needs the device for the precision auto only.
func (o runOptions) planPrecision(spec *manifest.Spec, stderr io.Writer) (err error) {
	if spec.Precision != manifest.PrecisionAuto {
		return nil
	}
	rt, err := o.open(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	if err := fixPrecision(spec, rt); err != nil {
		return err
	}
	o.notePrecision(stderr, spec, rt)
	return nil
}

package campaign

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// AddPrecision adds the flag of the precision of a campaign.
func AddPrecision(f *pflag.FlagSet, p *manifest.Precision) {
	f.StringVar((*string)(p), "precision", "",
		"arithmetic of the score network: "+cli.Words(append(parameter.Precisions(), manifest.PrecisionAuto))+" (default: the device's, float32)")
}

// precisionDevice is the part of a runtime that decides about the precision of a campaign.
type precisionDevice interface {
	Provider() string
	Precisions() []onnxruntime.Precision
	Computes(p onnxruntime.Precision) bool
	Whole(p onnxruntime.Precision) bool
	AutoPrecision() onnxruntime.Precision
}

// FixPrecision replaces the precision auto of a campaign by the suggestion of the device, or by float32 if a method of the campaign cannot use
// the suggestion; tasks that enlarge rounding errors stay in float32. why ends the note about the choice for auto. The error is onnxruntime.ErrPrecision if the device does not compute all methods in the
// campaign's precision.
func FixPrecision(spec *manifest.Spec, d precisionDevice, c manifest.Catalogue) (why string, err error) {
	if spec.Precision == "" {
		return "", nil
	}
	name, reason := c.Methods.Undivided(spec.Methods)
	p, auto := d.AutoPrecision(), spec.Precision == manifest.PrecisionAuto
	if auto {
		var kept []string
		if p != onnxruntime.FP32 {
			kept = spec.KeepFloat32(c.Operators.Sensitive())
		}
		why = " on " + d.Provider()
		switch {
		case name != "" && !d.Whole(p):
			p, why = onnxruntime.FP32, fmt.Sprintf(": method %s %s, which is float32", name, reason)
		case spec.Precision == manifest.PrecisionFloat32:
			p, why = onnxruntime.FP32, float32Tasks(": the network stays in float32", kept)
		case len(kept) > 0:
			why += float32Tasks(", and float32", kept)
		}
	} else if p, err = onnxruntime.ParsePrecision(string(spec.Precision)); err != nil {
		return "", err
	}
	switch {
	case !d.Computes(p):
		return "", fmt.Errorf("%w: %s cannot compute the network in %s; it computes in %s: choose one of them, or another --device",
			onnxruntime.ErrPrecision, d.Provider(), p, cli.Words(d.Precisions()))
	case name != "" && !d.Whole(p):
		remedy := "float32"
		if !d.Whole(onnxruntime.FP32) {
			remedy = "--device " + onnxruntime.ProviderCPU
		}
		return "", fmt.Errorf("%w: method %s %s, which %s cannot do in %s; leave the method out, or use %s",
			onnxruntime.ErrPrecision, name, reason, d.Provider(), p, remedy)
	}
	spec.Precision = p
	return why, nil
}

// leaveOutOperators removes the tasks of a campaign file, for which the tasks of own stand in, and from float32 those of its operators that
// are not among them.
func leaveOutOperators(s *manifest.Spec, own []item.Task) {
	names := map[string]bool{}
	for _, t := range s.Tasks {
		names[t.Name] = t.Operator != ""
	}
	for _, t := range own {
		delete(names, t.Name)
	}
	s.Tasks, s.Float32 = nil, slices.DeleteFunc(slices.Clone(s.Float32), func(name string) bool { return names[name] })
}

// float32Tasks ends the note that auto is float32 for tasks, see [manifest.Spec.Float32].
func float32Tasks(begin string, tasks []string) string {
	return begin + " for " + cli.Words(tasks) + ", where rounding errors grow from step to step"
}

// NotePrecision prints the choice for auto, with the end that FixPrecision returns; nothing without one.
func (o Options) NotePrecision(stderr io.Writer, spec *manifest.Spec, why string) {
	if why != "" && !o.Quiet && !o.JSON {
		fmt.Fprintf(stderr, "note: precision auto is %s%s\n", spec.Precision, why)
	}
}

// planPrecision is FixPrecision for a plan, which needs the device for the precision auto only.
func (o Options) planPrecision(spec *manifest.Spec, stderr io.Writer) (err error) {
	if spec.Precision != manifest.PrecisionAuto {
		return nil
	}
	rt, err := o.Open(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	why, err := FixPrecision(spec, rt, o.Catalogue)
	if err != nil {
		return err
	}
	o.NotePrecision(stderr, spec, why)
	return nil
}

// WithPlan opens what reads a campaign and runs nothing, and closes it after use. It fixes the precision auto of spec.
func (o Options) WithPlan(spec *manifest.Spec, stderr io.Writer, use func(p *prior.Prior, sources cli.Datasets) error) error {
	p, err := cli.OpenPriorOf(spec, o.Catalogue)
	if err != nil {
		return err
	}
	if _, err := o.Check(); err != nil {
		return err
	}
	if err := o.planPrecision(spec, stderr); err != nil {
		return err
	}
	sources, err := o.Sources.Open(spec.Output, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer sources.Close()
	return use(p, sources)
}

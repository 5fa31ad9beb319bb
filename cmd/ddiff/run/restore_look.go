package run

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/job"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

const (
	// leastNoise is an estimate of noise from which a picture is denoised without being asked, leastCompressedNoise one of a file with lossy compression, whose texture
	// counts.
	leastNoise           = 0.02
	leastCompressedNoise = 0.05
	// goodQuality is the quality from which the compression of a JPEG file is left alone.
	goodQuality = 85
)

// errNoTask is the error of pictures for which no task is given, or found.
var errNoTask = errors.New("give one --task NAME, or one --operator FILE: the degradation of the pictures; see: ddiff tasks")

// look chooses the task of pictures for which a person stated nothing, and says why: denoising where there is noise, else the compression of JPEG. Both leave a picture that
// needs neither as it is, more or less.
func (o *restoreOptions) look(flags *pflag.FlagSet, inputs []*picture, stderr io.Writer) error {
	stated := slices.ContainsFunc([]string{"param", "mask", "kernel", "sigma", "photons", "set", "solver", "preset", "operator", "task"}, flags.Changed)
	if stated {
		return nil
	}
	tasks := map[string]string{} // to one of its pictures
	for _, in := range inputs {
		found, task, err := examine(in.path, o.Catalogue.Operators)
		switch {
		case err != nil:
			found = cli.OneLine(err)
		case task == "":
			found += "; nothing to restore for certain"
		default:
			found += "; restored with --task " + task
		}
		tasks[task] = in.name
		if !o.JSON && !o.Quiet {
			fmt.Fprintln(stderr, cli.Printable(in.name+": "+found))
		}
	}
	names := slices.Sorted(maps.Keys(tasks))
	if len(names) > 1 {
		return fmt.Errorf("%s and %s need different tasks: %w", tasks[names[0]], tasks[names[1]], errNoTask)
	}
	if names[0] == "" {
		return fmt.Errorf("neither noise nor strong compression was found; a blur is not undone without being asked, and a small size is not looked for: %w", errNoTask)
	}
	o.Tasks = names
	if flags.Lookup("task").Changed = true; names[0] == operator.Denoise {
		o.Spec.Sigma, flags.Lookup("sigma").Changed = item.SigmaAuto, true
	}
	return nil
}

// examine describes a picture, and returns the task that restores it, "" for none.
func examine(path string, operators operator.Set) (found, task string, err error) {
	data, err := regular.Read(path, manifest.MaxFileBytes)
	if err != nil {
		return "", "", err
	}
	w, h, err := raster.ProbePicture(data)
	if err != nil {
		return "", "", err
	}
	parts := []string{fmt.Sprintf("%d×%d pixels, %s", w, h, strings.ToUpper(raster.FormatOf(data)))}
	least, quality := leastNoise, 100.0
	if raster.IsLossy(data) {
		least = leastCompressedNoise
		if read := operators.Known(operator.JPEG).Stated; read != nil && raster.IsJPEG(data) {
			if s, err := read(data); err == nil && s.Params != nil {
				quality = s.Params["quality"]
				parts[0] += fmt.Sprintf(" of quality %g", quality)
			}
		}
	}
	sigma, err := job.Look{Operators: operators}.Sigma(job.Noisy{Task: operator.Denoise, Width: w, Height: h, Measurement: data})
	if err != nil {
		parts = append(parts, "its noise is not known")
	} else {
		parts = append(parts, fmt.Sprintf("noise of about %.2g (%.2g of 255 levels)", sigma, sigma*white/2))
	}
	switch {
	case err == nil && sigma >= least:
		task = operator.Denoise
	case quality < goodQuality:
		task = operator.JPEG
	}
	if blur := blurOf(data); blur != "" {
		parts = append(parts, blur)
	}
	return strings.Join(parts, ", "), task, nil
}

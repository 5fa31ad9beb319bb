package run

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

const (
	// leastNoise is an estimate of noise from which a picture is denoised without being asked, leastCompressedNoise one of a file with lossy compression, whose texture
	// counts.
	leastNoise           = 0.02
	leastCompressedNoise = 0.05
	// goodQuality is the quality from which the compression of a JPEG file is left alone. leastRoundedNoise, over a lower quality, is the estimate from which
	// denoising gains more: the compression rounds smaller noise away (docs/data/restore-noisy-jpeg.csv).
	goodQuality       = 85
	leastRoundedNoise = 10
)

// errNoTask is the error of pictures for which no task is given, or found.
var errNoTask = errors.New("give one --task NAME, or one --operator FILE: the degradation of the pictures; see: ddiff tasks")

// group are the pictures that one task restores. An empty task is the one that a person stated.
type group struct {
	task   string
	inputs []*picture
}

// choose sets the flags of a command to the task of the group.
func (g group) choose(o *restoreOptions, flags *pflag.FlagSet) {
	if g.task == "" {
		return
	}
	o.Tasks, flags.Lookup("task").Changed = []string{g.task}, true
	if flags.Lookup("sigma").Changed = g.task == operator.Denoise; g.task == operator.Denoise {
		o.Spec.Sigma = item.SigmaAuto
	}
}

// skipSound is the reason for a picture that look leaves as it is.
const skipSound = "neither noise nor strong compression was found; a blur is not undone without being asked, and a small size is not looked for: give --task NAME, see: ddiff tasks"

// look chooses the task of each picture for which a person stated nothing, and says why: denoising where there is noise, else the compression of JPEG. A picture that
// needs neither is skipped; one that cannot be read has its error in refused.
func (o *restoreOptions) look(flags *pflag.FlagSet, inputs []*picture, refused map[string]error, skips *manifest.Skips, stderr io.Writer) (groups []group, err error) {
	stated := slices.ContainsFunc([]string{"param", "mask", "kernel", "sigma", "photons", "set", "solver", "preset", "operator", "task"}, flags.Changed)
	if stated {
		return []group{{"", inputs}}, nil
	}
	sound := false
	for _, in := range inputs {
		if raster.IsNPY(beginningOf(in.path)) {
			refused[in.name] = fmt.Errorf("it is an array, whose degradation is not looked for: %w", errNoTask)
			continue
		}
		found, task, err := examine(in.path, o.Catalogue.Operators)
		if err != nil {
			refused[in.name] = err
			continue
		}
		switch at := slices.IndexFunc(groups, func(g group) bool { return g.task == task }); {
		case task == "":
			sound = true
			skips.Add(manifest.Skip{Path: in.name, Reason: skipSound})
			found += "; skipped"
		case at >= 0:
			groups[at].inputs = append(groups[at].inputs, in)
		default:
			groups = append(groups, group{task, []*picture{in}})
		}
		if task != "" {
			found += "; restored with --task " + task
		}
		if !o.JSON && !o.Quiet {
			fmt.Fprintln(stderr, cli.Printable(in.name+": "+found))
		}
	}
	if len(groups) == 0 && !sound {
		return nil, fmt.Errorf("%s: %w", inputs[0].name, refused[inputs[0].name])
	}
	return groups, nil
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
				if quality < goodQuality {
					least = leastRoundedNoise / quality
				}
			}
		}
	}
	sigma, err := job.Look{Operators: operators}.Sigma(job.Noisy{Task: operator.Denoise, Width: w, Height: h, Measurement: data})
	switch {
	case errors.Is(err, raster.ErrFormat) || errors.Is(err, raster.ErrTruncated):
		return "", "", err
	case err != nil:
		parts = append(parts, "its noise is not known")
	default:
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

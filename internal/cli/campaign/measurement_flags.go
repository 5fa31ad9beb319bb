package campaign

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/manifest"
)

// MeasurementFlags are the flags about stored measurements.
type MeasurementFlags struct {
	values string // of black and white, LOW,HIGH
	mask   string
	kernel string
}

// Add registers the flags.
func (m *MeasurementFlags) Add(f *pflag.FlagSet) {
	f.StringVar(&m.values, "measurement-range", "", "values of black and white in .npy measurements, as `LOW,HIGH` (default: those of the task, -1,1 for pictures)")
	f.StringVar(&m.mask, "mask", "", "mask `file` for inpainting: an image whose bright half is observed, or .npy of zeros and ones")
	f.StringVar(&m.kernel, "kernel", "", "blur kernel `file` for motion, nonlinear and Gaussian blur: an image or .npy; square, odd side")
}

// set sets the fields of a dataset.
func (m *MeasurementFlags) set(flags *pflag.FlagSet, s *manifest.Spec) error {
	if flags.Changed("measurement-range") {
		low, high, _ := strings.Cut(m.values, ",")
		a, err1 := strconv.ParseFloat(strings.TrimSpace(low), 64)
		b, err2 := strconv.ParseFloat(strings.TrimSpace(high), 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("--measurement-range: %q is not LOW,HIGH, as in 0,255", m.values)
		}
		s.Dataset.MeasurementRange = &manifest.ValueRange{a, b}
		s.Override("dataset.measurement_range", "--measurement-range")
	}
	for _, f := range []struct {
		flag, path string
		into       *string
	}{{"mask", m.mask, &s.Dataset.Mask}, {"kernel", m.kernel, &s.Dataset.Kernel}} {
		if !flags.Changed(f.flag) {
			continue
		}
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("read --%s: %w", f.flag, err)
		}
		*f.into = f.path
		if !filepath.IsAbs(f.path) && !manifest.IsAddress(f.path) {
			*f.into = filepath.Join(dir, f.path)
		}
		if !manifest.IsAddress(f.path) {
			if err := manifest.CheckFile(*f.into); err != nil {
				return fmt.Errorf("--%s %s: %w", f.flag, f.path, err)
			}
		}
		s.Override("dataset."+f.flag, "--"+f.flag)
	}
	return nil
}

package manifest

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/internal/regular"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// maxSpecSize is the largest campaign file that is read, in bytes.
const maxSpecSize = 1 << 20

// PriorBundled is the value of [Spec.Prior] that names the prior inside the binary, PriorBase the larger one beside it.
const (
	PriorBundled = "bundled"
	PriorBase    = "bundled:base"
)

// Selection is the rule that combines the runs of a measurement for the report.
type Selection string

// The selection rules. They ignore failed and dead runs.
const (
	// SelectFirst selects the run with the lowest number. It is the default.
	SelectFirst Selection = "first"
	// SelectMean averages each figure over the runs.
	SelectMean Selection = "mean"
	// SelectClosestToNoise selects the run whose mean square residual is closest to σ², its expectation under the truth.
	SelectClosestToNoise Selection = "closest_to_noise"
	// SelectMinMisfit selects the run with the smallest mean square residual, as the literature on phase retrieval does.
	// It prefers overfitting: a run below σ² explains noise.
	SelectMinMisfit Selection = "min_misfit"
	// SelectBestPSNR and SelectBestSSIM select the run closest to the ground truth. They are oracles, unusable in practice,
	// so their figures are marked and never ranked.
	SelectBestPSNR Selection = "best_psnr"
	SelectBestSSIM Selection = "best_ssim"
)

// Selections returns all rules, the default first.
func Selections() []Selection {
	return []Selection{SelectFirst, SelectMean, SelectClosestToNoise, SelectMinMisfit, SelectBestPSNR, SelectBestSSIM}
}

// Oracle reports whether the rule uses the ground truth.
func (s Selection) Oracle() bool { return s == SelectBestPSNR || s == SelectBestSSIM }

// Sentence describes the rule for people.
func (s Selection) Sentence() string {
	switch s {
	case SelectMean:
		return "mean over the runs of each measurement"
	case SelectClosestToNoise:
		return "of each measurement the run whose mean square residual is closest to σ²"
	case SelectMinMisfit:
		return "of each measurement the run with the smallest mean square residual"
	case SelectBestPSNR:
		return "of each measurement the run with the highest PSNR"
	case SelectBestSSIM:
		return "of each measurement the run with the highest SSIM"
	default:
		return "the first run of each measurement"
	}
}

// Spec is one campaign: images, tasks, settings and the place of the results. The JSON form is itself a valid campaign file.
type Spec struct {
	// Name is for people, at most 100 characters. Default: the file's name without its
	// extension. [Spec.ID] makes a token of it.
	Name string `json:"name"`
	// Dataset is the source of the rows.
	Dataset Dataset `json:"dataset"`
	// Tasks are solved for each row. At least one.
	Tasks []item.Task `json:"tasks"`
	// LeftOut names tasks that [Spec.RestrictMethods] has left out: rows of a list that name one have no items. It must name no task of Tasks.
	LeftOut []string `json:"left_out,omitempty"`
	// Methods are the solvers that are compared. Default: ["ddiff"].
	Methods []string `json:"methods"`
	// Preset names the set of solver parameters. Default: "natural".
	Preset string `json:"preset"`
	// Prior is "bundled" (the default), "bundled:base" or the path of an ONNX file, relative to the
	// campaign file.
	Prior string `json:"prior"`
	// Steps is the number of solver steps, from 2 to the length of the prior's schedule. Default: 0, the preset's.
	Steps int `json:"steps"`
	// Sigma is the standard deviation of the measurement noise in units of y, 0..1, or auto: estimated from each stored
	// measurement. Default: 0.05.
	Sigma item.Sigma `json:"sigma"`
	// Photons is the mean photon count of a white pixel, which adds shot noise to that of Sigma; see [checkPhotons] for the
	// range. Nil, the default: no shot noise.
	Photons *float64 `json:"photons,omitempty"`
	// Seed keys every random draw. Default: 0.
	Seed uint64 `json:"seed"`
	// Runs is the number of solutions per measurement, each with other solver noise, 1..1000.
	// Default: 1.
	Runs int `json:"runs"`
	// Select is the rule that selects the run to report. Default: "first".
	Select Selection `json:"select"`
	// Batch is the number of images per solver call, up to 1024. Default: 0, chosen by the
	// worker. It does not change results.
	Batch int `json:"batch"`
	// Solver replaces parameters of the preset for all tasks.
	Solver parameter.Values `json:"solver"`
	// Output is the directory for results, relative to the working directory of the
	// process. Default: "out".
	Output string `json:"output"`
	// Precision is the arithmetic of the score network: float32, bfloat16, float16 or auto. Default: empty, each worker's
	// own default, float32 unless it was started with another one.
	Precision Precision `json:"precision,omitempty"`
	// Float32 names tasks whose network stays in float32 beside another Precision, also tasks that only rows of a list name. With the
	// precision auto, [Spec.KeepFloat32] adds the tasks that enlarge rounding errors. Default: none.
	Float32 []string `json:"float32,omitempty"`
	// Tile is the side in pixels of the tiles in which the score network predicts on larger images, or "auto": the size for which
	// the prior is meant. Default: empty or "off", the network predicts on the whole image.
	Tile string `json:"tile,omitempty"`
	// Overlap is the least number of pixels that neighbouring tiles share. Nil: a quarter of the tile, rounded up to a multiple that
	// the prior takes.
	Overlap *int `json:"overlap,omitempty"`
	// Split divides the images into those on which settings are chosen and those on which they are reported. Nil: no
	// division.
	Split *Split `json:"split,omitempty"`
	// KeepObserved puts the observed pixels of measurements with a mask into the restored images. Default: false.
	KeepObserved bool `json:"keep_observed,omitempty"`
	// Unclipped also stores restored images that are neither clipped nor rounded, as [FileUnclipped]. Default: false.
	Unclipped bool `json:"unclipped,omitempty"`
	// KeepStates names steps after which x_t is stored, as [item.FileStates]: "0,10,20", where 0 is the start, or "every 10". An item that was interrupted begins
	// again. Default: empty, none.
	KeepStates string `json:"keep_states,omitempty"`
	// Attempts is the number of attempts before an item is dead, 1..100. Default: 3.
	Attempts int `json:"attempts"`
	// Pool names the workers of a cluster that may restore the items, see [CheckPool]. Default: empty, those of all pools.
	Pool string `json:"pool,omitempty"`
	// Notify is the https address to which the coordinator of a cluster sends a signed message when the campaign pauses or ends; http is
	// for this machine only. Default: empty, none.
	Notify string `json:"notify,omitempty"`
	// Budget pauses the campaign on a cluster when it is used. Default: no limits.
	Budget Budget `json:"budget,omitzero"`
	// Deadline is the time by which the campaign should end on a cluster, in RFC 3339, as in 2026-12-01T08:00:00Z. Default: empty, none.
	Deadline string `json:"deadline,omitempty"`

	file  string         // name of the parsed file in errors
	lines map[string]int // field path -> line in file

	overrides map[string]string // field path -> name of the flag that set it
}

// Dataset is the source of the rows, and the policy that brings images to the working size.
type Dataset struct {
	// Path is a directory, a glob, a list or one image, relative to the campaign file, or an address: the package
	// comment of ddiff/internal/dataset lists all forms.
	Path string `json:"path"`
	// Columns maps columns of a row (see the package comment) to columns of the list, as in
	// {image: file_path, sigma: noise}. An unmapped column has the same name in the list; an empty name means that the
	// column is not read. With Columns, other columns of the list are ignored; without it, an unknown column is an error.
	Columns map[string]string `json:"columns,omitempty"`
	// Size is the working size in pixels, 8..4096. Default: 256. [FitPad] does not use it.
	Size int `json:"size"`
	// Fit is the policy that brings an image to the working size. Default: center_crop.
	Fit item.Fit `json:"fit"`
	// Limit keeps only the first rows. Default: 0, all.
	Limit int `json:"limit"`
	// Recursive also reads the directories below Path. Default: false.
	Recursive bool `json:"recursive"`
	// Measurements: the files of the dataset are measurements, .npy arrays of a directory too, and no images. Default: false.
	Measurements bool `json:"measurements,omitempty"`
	// MeasurementRange has the values of black and white in the measurements of the dataset. Nil: those of the operators.
	MeasurementRange *item.ValueRange `json:"measurement_range,omitempty"`
	// Mask and Kernel are files, relative to the campaign file, for rows without a mask or kernel of their own.
	Mask   string `json:"mask,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	// MaskShows and KernelForm say how the masks and kernels of the campaign are meant, see [item.DrawForm].
	MaskShows  string `json:"mask_shows,omitempty"`
	KernelForm string `json:"kernel_form,omitempty"`
}

// DrawForm returns the form of masks and kernels.
func (d *Dataset) DrawForm() item.DrawForm {
	return item.DrawForm{MaskShows: d.MaskShows, KernelForm: d.KernelForm}
}

// Default returns a campaign with every default filled in. Name, Dataset.Path and Tasks are
// left to the caller, who should give absolute paths: [Spec.ID] takes them as they are.
func Default() *Spec {
	return &Spec{
		Dataset:  Dataset{Size: 256, Fit: item.FitCenterCrop},
		Methods:  []string{"ddiff"},
		Preset:   "natural",
		Prior:    PriorBundled,
		Sigma:    0.05,
		Runs:     1,
		Select:   SelectFirst,
		Output:   "out",
		Attempts: 3,
	}
}

// Effective returns the task with its missing fields filled in from the campaign. Sigma is never nil in the result; Steps
// is 0 if the preset decides.
func (s *Spec) Effective(t item.Task) item.Task {
	if t.Sigma == nil {
		t.Sigma = &s.Sigma
	}
	t.Photons = cmp.Or(t.Photons, s.Photons)
	t.Steps = cmp.Or(t.Steps, s.Steps)
	t.Runs = cmp.Or(t.Runs, s.Runs)
	t.Solver = t.Solver.Or(s.Solver)
	t.Preset, t.Seed, t.Precision, t.KeepStates, t.KeepObserved = s.Preset, s.Seed, s.PrecisionOf(t.Name), s.KeepStates, s.KeepObserved
	return t
}

// Override records the flag that replaced a field of the file, such as "--steps". Errors about this field, and about
// entries of its list, name the flag.
func (s *Spec) Override(field, by string) {
	if s.overrides == nil {
		s.overrides = map[string]string{}
	}
	s.overrides[field] = by
}

// Load reads and parses a campaign file. Paths in it become absolute, relative to the
// file's directory.
func Load(path string) (*Spec, error) {
	base, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("locate campaign %q: %w", path, err)
	}
	data, err := regular.Read(path, maxSpecSize)
	switch {
	case errors.Is(err, regular.ErrTooLarge):
		return nil, errLargeSpec(path)
	case errors.Is(err, regular.ErrKind):
		return nil, fmt.Errorf("read campaign: %w", &FieldError{File: path, Err: fmt.Errorf("is %w; give a file", reason(err))})
	case err != nil:
		return nil, fmt.Errorf("read campaign: %w", err)
	}
	return Parse(path, data, base)
}

// Parse reads a campaign from YAML. Name is the file as errors should call it, base the
// absolute directory that relative paths start from.
//
// The reading is strict: unknown or repeated fields, wrong types, values out of range,
// anchors and aliases are refused. The error joins one [FieldError] per problem and prints
// one line for each. Whether names of tasks, methods and presets exist, and whether
// anything is missing, is left to [Spec.Validate]; with an error about fields the campaign
// is returned too, with those that could be read, for [Spec.Problems].
func Parse(name string, data []byte, base string) (*Spec, error) {
	if len(data) > maxSpecSize {
		return nil, errLargeSpec(name)
	}
	root, err := parseYAML(name, data)
	if err != nil {
		return nil, err
	}
	s := Default()
	s.file = name
	s.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	d := newYAMLDecoder(name)
	d.expandSweeps(root)
	d.decode(root, "", s)
	s.lines = d.lines

	if problems := slices.Concat(d.problems, s.checkRanges()); len(problems) > 0 {
		return s, joinByLine(problems)
	}
	s.Dataset.Path = ResolveDataset(base, s.Dataset.Path)
	s.Dataset.Mask, s.Dataset.Kernel = resolvePath(base, s.Dataset.Mask), resolvePath(base, s.Dataset.Kernel)
	if s.Prior != PriorBundled && s.Prior != PriorBase {
		s.Prior = resolvePath(base, s.Prior)
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		t.Operator, t.Mask, t.Kernel = resolvePath(base, t.Operator), resolvePath(base, t.Mask), resolvePath(base, t.Kernel)
	}
	return s, nil
}

// errLargeSpec returns the error of a campaign file above maxSpecSize.
func errLargeSpec(name string) error {
	return &FieldError{File: name, Err: errors.New("is larger than 1 MiB; put long lists of images into a .csv or .jsonl file")}
}

// resolvePath makes a path of a file in base absolute. Paths may lead out of base with
// "..": they belong to the person who wrote them. An address with a scheme stays as it is.
func resolvePath(base, path string) string {
	if path == "" || filepath.IsAbs(path) || IsAddress(path) {
		return path
	}
	return filepath.Join(base, path)
}

// ID names the campaign of an owner in queues, stores and reports: its name as a token of [a-z0-9-] and eight hex
// digits of a digest of the spec and the owner, as in "night-photos-5f0c11d2". The campaigns of people who submit one file
// have ids of their own. A campaign of one machine has no owner.
//
// The digest leaves out Output, Batch, Attempts, Notify, Budget, Deadline and Pool, which change no result: an interrupted campaign
// may resume with another batch or more attempts. It includes the absolute path of the dataset: a
// moved dataset is another campaign with the same items. ID is defined for specs that
// [Spec.Validate] accepts; for infinite numbers and NaN the digits are "invalid".
func (s *Spec) ID(owner string) string {
	c := *s
	c.Output, c.Batch, c.Attempts, c.Notify, c.Pool, c.Budget, c.Deadline = "", 0, 0, "", "", Budget{}, ""
	key, err := item.Digest(struct {
		Schema int    `json:"schema"`
		Spec   Spec   `json:"spec"`
		Owner  string `json:"owner,omitempty"`
	}{item.SchemaVersion, c, owner})
	if err != nil {
		return fmt.Sprintf("%s-invalid", token(s.Name))
	}
	return fmt.Sprintf("%s-%s", token(s.Name), hex.EncodeToString(key[:4]))
}

// token reduces a name to at most 40 characters of [a-z0-9-].
func token(name string) string {
	const longest = 40
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if r < 'a' || r > 'z' {
			if r < '0' || r > '9' {
				gap = b.Len() > 0
				continue
			}
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	t := b.String()
	if len(t) > longest {
		t = strings.TrimRight(t[:longest], "-")
	}
	if t == "" {
		return "campaign"
	}
	return t
}

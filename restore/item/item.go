// Package item describes one unit of work, its identity and its result: one image or stored measurement, one task, one method, one run.
//
// [Item.ID] is the SHA-256 of everything that determines the result, and of nothing else. [Item.MeasurementKey], [Item.OperatorKey] and
// [Item.RunKey] key the random draws, so that an item has the same bits in a campaign and without one. A setting that changes a result belongs to the identity.
package item

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"

	"ddiff/internal/failure"
	"ddiff/internal/redact"
	"ddiff/restore/parameter"
)

// SchemaVersion is part of every identity. Raise it if the meaning of a field of an identity changes,
// so that old results are not reused.
const SchemaVersion = 1

// ErrNewer: the message or the result comes from a newer version of ddiff, which knows a field or a value that this version does
// not know. Another worker may be able to process it.
var ErrNewer = failure.New(failure.Input, "written by a newer version of ddiff")

// Fit is the policy that brings an image to the working size.
type Fit string

// The size policies. All of them lead to a multiple of the prior's granularity.
const (
	FitCenterCrop Fit = "center_crop" // scale the short side to the size, crop the centre
	FitResize     Fit = "resize"      // scale both sides to the size, aspect ratio is not kept
	FitPad        Fit = "pad"         // keep the pixels, mirror up to the next multiple
)

// Fits returns the policies, the default first.
func Fits() []Fit { return []Fit{FitCenterCrop, FitResize, FitPad} }

// Source identifies one input file.
type Source struct {
	// Path is relative to the dataset's root, or absolute.
	Path string `json:"path"`
	// SHA256 is the lower-case hex digest of the file; a worker refuses other bytes.
	SHA256 string `json:"sha256"`
}

// Public returns the path without secrets.
func (s *Source) Public() string { return redact.Address(s.Path) }

// Public returns the item for results and messages: the addresses of its files lack queries that may be signatures. Its
// identity is that of the item.
func (it Item) Public() Item {
	for _, s := range []**Source{&it.Image, &it.Measurement, &it.Mask, &it.Kernel, &it.Operator} {
		if *s != nil {
			*s = &Source{Path: (*s).Public(), SHA256: (*s).SHA256}
		}
	}
	return it
}

// Sources returns the source files of an item by field.
func (it Item) Sources() map[string]*Source {
	all := map[string]*Source{"image": it.Image, "measurement": it.Measurement, "mask": it.Mask, "kernel": it.Kernel}
	maps.DeleteFunc(all, func(_ string, s *Source) bool { return s == nil })
	return all
}

// Item is one unit of work: one image or stored measurement, one task, one method, one run. It is the
// payload of a queue message.
type Item struct {
	// ID is the identity: the hex SHA-256 of everything that determines the result.
	ID string `json:"id"`
	// Campaign is the id of the item's campaign; not part of the identity.
	Campaign string `json:"campaign"`
	// Index is the position in the manifest; not part of the identity.
	Index int `json:"index"`
	// Name is the row's name, unique within the dataset; not part of the identity.
	Name string `json:"name"`

	// Image is the ground truth, from which the measurement is simulated. Nil: only a stored measurement exists.
	Image *Source `json:"image,omitempty"`
	// Measurement is a stored y, a .npy array or a picture, which replaces the simulation.
	Measurement *Source `json:"measurement,omitempty"`
	// MeasurementRange has the values of black and white in the array, or in the samples of the picture. Nil: those of the operator.
	MeasurementRange *ValueRange `json:"measurement_range,omitempty"`
	// Picture describes a measurement that is a picture, as soon as it was read. It is not part of the identity.
	Picture *Picture `json:"picture,omitempty"`
	// Mask and Kernel replace the operator's draw of a mask (inpainting) or a blur kernel
	// (deblurring). Nil: drawn from Seed.
	Mask   *Source `json:"mask,omitempty"`
	Kernel *Source `json:"kernel,omitempty"`
	DrawForm

	// FromTask: Mask or Kernel is that of the task, not of the row. It is not part of the identity.
	FromTask bool `json:"from_task,omitempty"`

	// OwnKernel: Kernel replaces the operator of the task, which has no draw. Workers of versions without the field refuse the item.
	OwnKernel bool `json:"own_kernel,omitempty"`

	// Width and Height are the working size in pixels, after Fit.
	Width  int `json:"width"`
	Height int `json:"height"`
	Fit    Fit `json:"fit"`

	// Task is the name of an operator, Params its complete parameters.
	Task   string             `json:"task"`
	Params map[string]float64 `json:"params,omitempty"`
	// Operator is the file of the operator; Task is then only its name for people. Nil: Task is a built-in operator.
	Operator *Source `json:"operator,omitempty"`
	// Sigma is the standard deviation of the measurement noise, in units of y.
	Sigma float64 `json:"sigma"`
	// SigmaEstimated: Sigma was estimated from the measurement; it is 0 if that failed. It is not part of the identity.
	SigmaEstimated bool `json:"sigma_estimated,omitempty"`
	// Photons is the mean photon count of a white pixel, which adds shot noise. 0: none.
	Photons float64 `json:"photons,omitempty"`
	Seed    uint64  `json:"seed"`
	// Run numbers repeated runs of one measurement, from 0.
	Run int `json:"run"`

	// Method is the name of the algorithm, Solver its resolved settings in JSON, opaque here.
	Method string          `json:"method"`
	Solver json.RawMessage `json:"solver"`
	// Prior is the SHA-256 of the prior's file.
	Prior string `json:"prior"`
	// Precision is the fixed precision of the score network. Empty: the worker's default.
	Precision parameter.Precision `json:"precision,omitempty"`
	// Tile and Overlap are the tiles in which the network predicts, in pixels. 0: the whole image, because the campaign has no tiles or because
	// one tile covers the image.
	Tile    int `json:"tile,omitempty"`
	Overlap int `json:"overlap,omitempty"`
	// Unclipped also stores the restored image as [FileUnclipped]. It is not part of the identity.
	Unclipped bool `json:"unclipped,omitempty"`
	// KeepStates names the steps after which x_t is stored, see [KeptStates]. It is not part of the identity.
	KeepStates string `json:"keep_states,omitempty"`
	// KeepObserved puts the observed pixels of a measurement with a mask into the restored image.
	KeepObserved bool `json:"keep_observed,omitempty"`
	// Preset is the name of the preset that Solver began with; not part of the identity, which has the settings.
	Preset string `json:"preset,omitempty"`
	// Choice is the reason why the program chose the method. Empty: a person named it. It is not part of the identity.
	Choice string `json:"choice,omitempty"`
}

// Identity is the first half of an item's id, or of another digest. The probability that two of a million items share it is 10^-27.
type Identity [16]byte

// ParseIdentity returns the identity of a digest in hexadecimal digits, and false if there is none.
func ParseIdentity(id string) (k Identity, ok bool) {
	if len(id) < 2*len(k) {
		return k, false
	}
	_, err := hex.Decode(k[:], []byte(id[:2*len(k)]))
	return k, err == nil
}

// measurementIdentity determines y: image, operator and noise.
type measurementIdentity struct {
	Schema      int                `json:"schema"`
	Image       string             `json:"image,omitempty"`
	Measurement string             `json:"measurement,omitempty"`
	Width       int                `json:"width"`
	Height      int                `json:"height"`
	Fit         Fit                `json:"fit"`
	Task        string             `json:"task"`
	Params      map[string]float64 `json:"params,omitempty"`
	Sigma       float64            `json:"sigma"`
	Seed        uint64             `json:"seed"`
	Mask        string             `json:"mask,omitempty"`
	Kernel      string             `json:"kernel,omitempty"`
	Operator    string             `json:"operator,omitempty"`
	// Without the field, measurements in the operator's range keep their identities.
	MeasurementRange *ValueRange `json:"measurement_range,omitempty"`
	// The same holds for measurements without the noise of photons.
	Photons float64 `json:"photons,omitempty"`
	// The same holds for tasks without a kernel of their own.
	OwnKernel bool `json:"own_kernel,omitempty"`
	// The same holds for masks and kernels in the default form.
	DrawForm
}

func (it *Item) measurement() measurementIdentity {
	m := measurementIdentity{
		Schema: SchemaVersion,
		Width:  it.Width, Height: it.Height, Fit: it.Fit,
		Task: it.Task, Params: it.Params, Sigma: it.Sigma, Seed: it.Seed, MeasurementRange: it.MeasurementRange,
		Photons: it.Photons, OwnKernel: it.OwnKernel, DrawForm: it.identity(it.Mask != nil, it.Kernel != nil),
	}
	if it.Image != nil {
		m.Image = it.Image.SHA256
	}
	if it.Measurement != nil {
		m.Measurement = it.Measurement.SHA256
	}
	if it.Mask != nil {
		m.Mask = it.Mask.SHA256
	}
	if it.Kernel != nil {
		m.Kernel = it.Kernel.SHA256
	}
	if it.Operator != nil {
		// The bytes of the file are the operator, whatever its name and place.
		m.Task, m.Operator = "", it.Operator.SHA256
	}
	return m
}

// MeasurementKey identifies the measurement y. Items that differ only in method, solver, prior or run
// share it and can be compared pairwise.
func (it *Item) MeasurementKey() ([32]byte, error) {
	return Digest(it.measurement())
}

// OperatorKey keys the random draws of the operator (mask position, motion path). Unlike
// MeasurementKey it leaves sigma and photons out, so that a noise sweep keeps its masks.
func (it *Item) OperatorKey() ([32]byte, error) {
	m := it.measurement()
	m.Sigma, m.Photons = 0, 0
	return Digest(m)
}

// RunKey keys the random draws of the solver. It depends on measurement and run only, so that methods
// and settings are compared on common random numbers.
func (it *Item) RunKey() ([32]byte, error) {
	m, err := it.MeasurementKey()
	if err != nil {
		return m, err
	}
	return Digest(struct {
		Measurement string `json:"measurement"`
		Run         int    `json:"run"`
	}{hex.EncodeToString(m[:]), it.Run})
}

// Identify computes and stores the item's ID.
func (it *Item) Identify() error {
	id, err := Digest(struct {
		measurementIdentity
		Run    int             `json:"run"`
		Method string          `json:"method"`
		Solver json.RawMessage `json:"solver"`
		Prior  string          `json:"prior"`
		// Without the field, items of campaigns that fix no precision keep their identities.
		Precision parameter.Precision `json:"precision,omitempty"`
		// The same holds for images that are not divided into tiles.
		Tile    int `json:"tile,omitempty"`
		Overlap int `json:"overlap,omitempty"`
		// The same holds for images with restored pixels alone.
		KeepObserved bool `json:"keep_observed,omitempty"`
	}{it.measurement(), it.Run, it.Method, it.Solver, it.Prior, it.Precision, it.Tile, it.Overlap, it.KeepObserved})
	if err != nil {
		return fmt.Errorf("identify item %q: %w", it.Name, err)
	}
	it.ID = hex.EncodeToString(id[:])
	return nil
}

// Digest hashes the JSON form, which is canonical: struct fields in order, map keys sorted, raw messages compacted.
func Digest(v any) ([32]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return [32]byte{}, err
	}
	return sha256.Sum256(b), nil
}

// CheckID returns ErrNewer if the identity that follows from the known fields is not the item's ID.
func (it *Item) CheckID() error {
	known := *it
	if err := known.Identify(); err != nil {
		return err
	}
	if known.ID != it.ID {
		return fmt.Errorf("%w: item %s has a setting that this version does not know: its id is %.12s, the known settings have %.12s",
			ErrNewer, it.Name, it.ID, known.ID)
	}
	return nil
}

// positiveZero removes the sign of a zero, which would change the digest.
func positiveZero(x float64) float64 {
	if x == 0 {
		return math.Abs(x)
	}
	return x
}

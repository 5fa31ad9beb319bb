package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"ddiff/internal/regular"
	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// remedy is the remedy for an output that was changed.
const remedy = "put the original back, or move the item's folder away and run its campaign again"

// problem is one difference between an output and its passport.
type problem struct {
	File    string `json:"file"`
	Field   string `json:"field"`
	Problem string `json:"problem"` // cause and remedy
}

func (p problem) String() string { return fmt.Sprintf("%s: %s: %s", p.File, p.Field, p.Problem) }

// output is a restored image with the problems found in it.
type output struct {
	File string `json:"file"`
	Item string `json:"item,omitempty"`
	OK   bool   `json:"ok"`
	// Unfinished: an interruption left the folder of an item without its result, or without files of it.
	Unfinished bool `json:"unfinished,omitempty"`
	// Newer: a newer version wrote the passport or the result, so that this one cannot check it.
	Newer    bool      `json:"newer,omitempty"`
	Problems []problem `json:"problems,omitempty"`
	Notes    []string  `json:"notes,omitempty"`

	from     origin             // where File and the files beside it are
	image    *raster.Image      // nil when it cannot be decoded
	bits     int                // of its samples
	lossy    bool               // by its compression
	passport *passport.Passport // nil when it cannot be read
}

// addProblem adds a problem, once.
func (o *output) addProblem(file, field, format string, args ...any) {
	if p := (problem{file, field, fmt.Sprintf(format, args...)}); !slices.Contains(o.Problems, p) {
		o.Problems = append(o.Problems, p)
	}
}

// addNewer adds the note that a newer version wrote the output.
func (o *output) addNewer(file string, err error) {
	o.Newer = true
	o.addNote("%s is not checked: %v", filepath.Base(file), err)
}

func (o *output) addNote(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// beside returns the path of a file in the folder of the image.
func (o *output) beside(name string) string { return filepath.Join(filepath.Dir(o.File), name) }

// folder returns the name of the image's folder if that is an item's folder in an output, else "".
func (o *output) folder() string {
	path, err := filepath.Abs(o.File)
	if err != nil {
		return ""
	}
	dir := filepath.Dir(path)
	if filepath.Base(filepath.Dir(dir)) != "items" {
		return ""
	}
	return filepath.Base(dir)
}

// unfinished returns why the folder of an item lacks files of its result, which its campaign brings when it runs again; empty if it does not.
func (o *output) unfinished(ctx context.Context) string {
	id := o.folder()
	if id == "" || filepath.Base(o.File) != item.FileRestored {
		return ""
	}
	data, err := o.from.get(ctx, o.beside(item.FileResult))
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no " + item.FileResult + ", which is written last"
	}
	r, err := item.DecodeResult(data)
	for _, name := range r.Replaces {
		digest := r.Artifacts[name]
		staged, readErr := o.from.get(ctx, o.beside(filepath.Join("..", "..", item.StagedKey(id, digest))))
		if err == nil && readErr == nil && regular.SHA256(staged) == digest {
			return name + " is that of a lost attempt, which the one of the result has not replaced yet"
		}
	}
	return ""
}

// read reads the image and its passport and checks that they match.
func (o *output) read(ctx context.Context) {
	file := o.File
	data, err := o.from.get(ctx, file)
	if err != nil {
		o.addProblem(file, "file", "%s", cannotRead(err))
		return
	}
	_, o.bits = raster.Samples(data)
	o.lossy = raster.IsLossy(data)
	if o.image, err = raster.Decode(data); err != nil {
		o.addProblem(file, "pixels", "%v; %s", err, remedy)
	}
	p, err := passport.Read(data)
	switch {
	case errors.Is(err, passport.ErrNone):
		o.addProblem(file, "passport", "the file has none: it is no restored picture, or the mean or deviation of several, or another program removed it; %s", remedy)
	case errors.Is(err, item.ErrNewer):
		o.addNewer(file, err)
	case err != nil:
		o.addProblem(file, "passport", "%v; %s", err, remedy)
	default:
		o.passport, o.Item = &p, p.Item.ID
		o.checkPassport()
	}
}

// cannotRead describes why a file of an output cannot be read, with the remedy.
func cannotRead(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "is missing; " + remedy // a campaign never replaces the files of an item with a result
	}
	return fmt.Sprintf("cannot be read: %v", err)
}

// checkPassport checks the passport's identity and its digest of the image.
func (o *output) checkPassport() {
	p := o.passport
	item := p.Item
	if err := item.Identify(); err != nil {
		o.addProblem(o.File, "item", "%v; %s", err, remedy)
	} else if err := p.Item.CheckID(); err != nil && p.Unknown {
		o.addNewer(o.File, err)
	} else if err != nil {
		o.addProblem(o.File, "item.id", "is %.12s, what the passport describes has the identity %.12s: it was changed; %s", p.Item.ID, item.ID, remedy)
	}
	if used := p.Runtime.Precision; p.Item.Precision != "" && used != p.Item.Precision {
		o.addProblem(o.File, "runtime.precision", "is %q, the item has the precision %s: the passport was changed; %s", used, p.Item.Precision, remedy)
	}
	if o.image == nil {
		return
	}
	width, height := p.Item.RestoredSize()
	if o.image.Width != width || o.image.Height != height {
		o.addProblem(o.File, "item.width, item.height", "are %d and %d, the image has %d×%d pixels; %s",
			width, height, o.image.Width, o.image.Height, remedy)
	}
	samples, err := raster.RGB8(o.image)
	if err != nil {
		o.addProblem(o.File, "pixels", "%v", err)
	} else if sum := regular.SHA256(samples); sum != p.Pixels {
		o.addProblem(o.File, "pixels", "have the SHA-256 %.12s, the passport says %.12s: the image was changed; %s", sum, p.Pixels, remedy)
	}
}

// checkSidecar checks the result beside the image and the files that it names.
func (o *output) checkSidecar(ctx context.Context) {
	path, folder := o.beside(item.FileResult), o.folder()
	if folder != "" && o.passport != nil && folder != o.passport.Item.ID {
		o.addProblem(o.File, "item.id", "is %.12s, its folder is called %.12s: it belongs to another item; %s", o.passport.Item.ID, folder, remedy)
	}
	data, err := o.from.get(ctx, path)
	if errors.Is(err, fs.ErrNotExist) && folder == "" {
		if o.passport == nil {
			return
		}
		o.addNote("verified by its passport alone: there is no %s beside it", item.FileResult)
		return
	}
	if err != nil {
		o.addProblem(path, "file", "%s", cannotRead(err))
		return
	}
	r, err := item.DecodeResult(data)
	if errors.Is(err, item.ErrNewer) {
		o.addNewer(path, err)
		return
	}
	if err != nil {
		o.addProblem(path, "file", "cannot be read: %v; %s", err, remedy)
		return
	}
	if o.passport != nil && r.Item.ID != o.passport.Item.ID && filepath.Base(o.File) != item.FileRestored {
		o.addNote("verified by its passport alone: the %s beside it is another item's", item.FileResult)
		return
	}
	if r.Schema != item.SchemaVersion {
		o.addProblem(path, "schema", "is %d, this program reads %d; %s", r.Schema, item.SchemaVersion, remedy)
	}
	if r.Outcome != item.OutcomeDone {
		o.addProblem(path, "outcome", "is %q beside a restored image, want %q; %s", r.Outcome, item.OutcomeDone, remedy)
	}
	if r.Artifacts[item.FileRestored] == "" {
		o.addProblem(path, "artifacts", "do not name %s; %s", item.FileRestored, remedy)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Artifacts)) {
		o.checkArtifact(ctx, path, name, r.Artifacts[name])
	}
	if o.passport != nil && o.image != nil {
		o.compare(path, r)
	}
	o.checkDigest(path, data)
}

// checkDigest checks the digest of the result, unless another problem of the result is known: it covers fields that the
// passport lacks, such as steps, seconds, campaign and index.
func (o *output) checkDigest(path string, data []byte) {
	err := item.CheckResult(data)
	if err != nil && !slices.ContainsFunc(o.Problems, func(p problem) bool { return p.File == path }) {
		o.addProblem(path, "sha256", "%v; %s", err, remedy)
	}
}

// checkArtifact checks a file against its digest in the result.
func (o *output) checkArtifact(ctx context.Context, result, name, want string) {
	if name != filepath.Base(name) {
		o.addProblem(result, "artifacts", "names %q, which is not a file beside it; %s", name, remedy)
		return
	}
	data, err := o.from.get(ctx, o.beside(name))
	if err != nil {
		o.addProblem(o.beside(name), "file", "%s", cannotRead(err))
	} else if sum := regular.SHA256(data); sum != want {
		o.addProblem(o.beside(name), "file", "has the SHA-256 %.12s, %s says %.12s: it was changed; %s", sum, item.FileResult, want, remedy)
	}
}

// compare reports the fields in which result and passport differ.
func (o *output) compare(path string, r item.Result) {
	want, err := passport.Of(r, o.image)
	if err != nil {
		o.addProblem(path, "file", "%v; %s", err, remedy)
		return
	}
	want.Pixels = o.passport.Pixels // the result does not contain it
	a, errA := json.Marshal(want)
	b, errB := json.Marshal(o.passport)
	if err := errors.Join(errA, errB); err != nil {
		o.addProblem(path, "file", "%v; %s", err, remedy)
		return
	}
	o.differences(path, "", a, b)
}

// differences reports the fields in which two JSON values differ.
func (o *output) differences(path, field string, result, passport json.RawMessage) {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(result, &a) != nil || json.Unmarshal(passport, &b) != nil || a == nil || b == nil {
		if !bytes.Equal(result, passport) {
			o.addProblem(path, field, "is %s, the passport in %s says %s: one was changed; %s",
				orNothing(result), filepath.Base(o.File), orNothing(passport), remedy)
		}
		return
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		below := name
		if field != "" {
			below = field + "." + name
		}
		o.differences(path, below, a[name], b[name])
	}
}

func orNothing(value json.RawMessage) string {
	if value == nil {
		return "nothing"
	}
	return string(value)
}

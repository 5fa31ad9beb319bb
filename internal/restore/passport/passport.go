// Package passport records in a restored image how it was produced, and reads such records. A field of a result that explains the image
// belongs to [Passport]; its order and times do not.
package passport

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ddiff/internal/regular"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
	"ddiff/restore/item"
)

// Errors of reading a passport.
var (
	// ErrNone: the file has no passport.
	ErrNone = errors.New("no passport")
	// ErrUnreadable: the passport is damaged.
	ErrUnreadable = errors.New("unreadable passport")
)

const (
	keyword = "ddiff" // of the text chunk of restored.png
	schema  = 1       // version of Passport
)

// Passport records how a restored image was produced. It is JSON in a text chunk of the image file, so that a copy of the
// image includes it. It has no timestamp: equal results have equal passports, except for worker, attempt and trace.
type Passport struct {
	Schema int `json:"schema"`
	// Item determines the image. Campaign, Index, Unclipped and KeepStates are not part of a passport.
	Item item.Item `json:"item"`
	// Pixels is the SHA-256 of the image's samples, see [raster.RGB8]. Unlike a digest of the file, it remains valid when
	// another program encodes the image again.
	Pixels string `json:"pixels"`
	// Data maps measurement.npy, and mask.npy or kernel.npy, to their SHA-256.
	Data map[string]string `json:"data"`

	// The other fields are those of [item.Result].
	Metrics   item.Metrics      `json:"metrics,omitempty"`
	MetricIDs map[string]string `json:"metric_ids,omitempty"`
	Warnings  []item.Warning    `json:"warnings,omitempty"`
	Batch     int               `json:"batch,omitempty"`
	Runtime   item.Runtime      `json:"runtime"`
	Worker    string            `json:"worker,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	TraceID   string            `json:"trace_id,omitempty"`

	// Unknown: the passport that was read has fields that this version does not know, and ignores.
	Unknown bool `json:"-"`
}

// Of returns the passport of a result with the restored image img. The result must have the digests of its
// arrays.
func Of(res item.Result, img *raster.Image) (Passport, error) {
	samples, err := raster.RGB8(img)
	if err != nil {
		return Passport{}, fmt.Errorf("create passport: %w", err)
	}
	p := Passport{
		Schema: schema, Item: res.Item, Pixels: regular.SHA256(samples), Data: map[string]string{},
		Metrics: res.Metrics, MetricIDs: res.MetricIDs, Warnings: res.Warnings, Batch: res.Batch, Runtime: res.Runtime,
		Worker: res.Worker, Attempt: res.Attempt, TraceID: res.TraceID,
	}
	p.Item.Campaign, p.Item.Index, p.Item.Unclipped, p.Item.KeepStates = "", 0, false, ""
	for _, name := range []string{item.FileData, "mask.npy", "kernel.npy"} {
		if sum, ok := res.Artifacts[name]; ok {
			p.Data[name] = sum
		}
	}
	return p, nil
}

// MarshalJSON omits Campaign and Index of the item.
func (p Passport) MarshalJSON() ([]byte, error) {
	type plain Passport
	type subject struct {
		item.Item
		Campaign *string `json:"campaign,omitempty"`
		Index    *int    `json:"index,omitempty"`
	}
	return json.Marshal(struct {
		Item subject `json:"item"`
		plain
	}{subject{Item: p.Item}, plain(p)})
}

// Read reads the passport of a PNG, JPEG, TIFF or WebP file. It returns [ErrNone] or [ErrUnreadable] if it cannot, and [item.ErrNewer] for a higher
// schema. It does not verify the contents.
func Read(file []byte) (p Passport, err error) {
	var text string
	var found bool
	switch raster.FormatOf(file) {
	case "jpeg", "tiff", "webp":
		text, found = metadata.Text(file, keyword)
	default:
		text, found, err = raster.PNGText(file, keyword)
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("%w: %w", ErrUnreadable, err)
	case !found:
		return p, ErrNone
	}
	var version struct{ Schema int } // a newer version may have fields of another form
	if err := json.Unmarshal([]byte(text), &version); err != nil {
		return p, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	switch {
	case version.Schema > schema:
		return p, fmt.Errorf("passport %w: schema is %d, this version knows %d; use that version", item.ErrNewer, version.Schema, schema)
	case version.Schema != schema:
		return p, fmt.Errorf("%w: schema %d, this program reads %d", ErrUnreadable, version.Schema, schema)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return Passport{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	strict := json.NewDecoder(strings.NewReader(text))
	strict.DisallowUnknownFields()
	p.Unknown = strict.Decode(new(Passport)) != nil
	return p, nil
}

// Encode returns restored.png: the image with the passport of the result.
func Encode(img *raster.Image, form raster.Picture, res item.Result) ([]byte, error) {
	p, err := Of(res, img)
	if err != nil {
		return nil, err
	}
	file, err := raster.EncodePicture(img, form)
	if err != nil {
		return nil, err
	}
	return p.put(file)
}

// Copy returns another file of a restored image, in any format, with the passport of its PNG file. The digest of the pixels is that of the copy.
func Copy(file, restored []byte) ([]byte, error) {
	p, err := Read(restored)
	if err != nil {
		return nil, err
	}
	img, err := raster.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("copy passport: %w", err)
	}
	samples, err := raster.RGB8(img)
	if err != nil {
		return nil, fmt.Errorf("copy passport: %w", err)
	}
	p.Pixels = regular.SHA256(samples)
	return p.put(file)
}

// Strip returns restored.png with a passport that names files without their folders, and no machine. [ErrNone] and [ErrUnreadable] are those of [Read].
func Strip(restored []byte) ([]byte, error) {
	p, err := Read(restored)
	if err != nil {
		return nil, err
	}
	for _, s := range []*item.Source{p.Item.Image, p.Item.Measurement, p.Item.Mask, p.Item.Kernel, p.Item.Operator} {
		if s != nil {
			s.Path = base(s.Path)
		}
	}
	p.Item.Name, p.Worker = base(p.Item.Name), ""
	return p.put(restored)
}

// base is the last element of a path or an address.
func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// put returns a file with the passport.
func (p Passport) put(file []byte) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write passport: %w", err)
	}
	if raster.FormatOf(file) == "png" {
		return raster.SetPNGText(file, keyword, string(text))
	}
	return metadata.SetText(file, keyword, string(text))
}

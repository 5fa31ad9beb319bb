package gpuworker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"ddiff/manifest"
	"ddiff/restore/raster"
)

// Errors of reading a passport.
var (
	// ErrNoPassport: the PNG file has no passport.
	ErrNoPassport = errors.New("no passport")
	// ErrPassport: the passport is damaged, or of another version.
	ErrPassport = errors.New("unreadable passport")
)

const (
	// passportKeyword is that of the text chunk of restored.png.
	passportKeyword = "ddiff"
	// passportSchema is the version of Passport.
	passportSchema = 1
)

// Passport says what a restored image is and how it was made. It lies in the file of the
// image, as JSON in a text chunk, and goes where the image goes. It holds no time: the same
// result has the same passport, but for the attempt that made it.
type Passport struct {
	Schema int `json:"schema"`
	// Item determines the image. Campaign and Index are no part of a passport.
	Item manifest.Item `json:"item"`
	// Pixels is the SHA-256 of the image's samples, see [raster.RGB8]. Other than a digest of
	// the file, it is still right when another program has encoded the image again.
	Pixels string `json:"pixels"`
	// Data maps measurement.npy, and mask.npy or kernel.npy, to their SHA-256.
	Data map[string]string `json:"data"`

	// The scores, and how and by whom the image was made, as in [manifest.Result].
	Metrics   manifest.Metrics  `json:"metrics"`
	MetricIDs map[string]string `json:"metric_ids,omitempty"`
	Batch     int               `json:"batch,omitempty"`
	Runtime   manifest.Runtime  `json:"runtime"`
	Worker    string            `json:"worker,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	TraceID   string            `json:"trace_id,omitempty"`
}

// PassportOf is the passport of a result whose picture is img. The artifacts of the result
// must hold those that the passport names.
func PassportOf(res manifest.Result, img *raster.Image) (Passport, error) {
	samples, err := raster.RGB8(img)
	if err != nil {
		return Passport{}, fmt.Errorf("make passport: %w", err)
	}
	p := Passport{
		Schema: passportSchema, Item: res.Item, Pixels: digest(samples), Data: map[string]string{},
		Metrics: res.Metrics, MetricIDs: res.MetricIDs, Batch: res.Batch, Runtime: res.Runtime,
		Worker: res.Worker, Attempt: res.Attempt, TraceID: res.TraceID,
	}
	p.Item.Campaign, p.Item.Index = "", 0
	for _, name := range []string{manifest.FileData, fileMask, fileKernel} {
		if sum, ok := res.Artifacts[name]; ok {
			p.Data[name] = sum
		}
	}
	return p, nil
}

// MarshalJSON leaves out what is no part of a passport.
func (p Passport) MarshalJSON() ([]byte, error) {
	type plain Passport
	type subject struct {
		manifest.Item
		Campaign *string `json:"campaign,omitempty"`
		Index    *int    `json:"index,omitempty"`
	}
	return json.Marshal(struct {
		Item subject `json:"item"`
		plain
	}{subject{Item: p.Item}, plain(p)})
}

// ReadPassport reads the passport of a PNG file: [ErrNoPassport] and [ErrPassport] otherwise.
// What it says is not checked.
func ReadPassport(file []byte) (Passport, error) {
	text, found, err := raster.PNGText(file, passportKeyword)
	switch {
	case err != nil:
		return Passport{}, fmt.Errorf("%w: %w", ErrPassport, err)
	case !found:
		return Passport{}, ErrNoPassport
	}
	// A later version may have fields that this one does not know.
	var version struct{ Schema int }
	if err := json.Unmarshal([]byte(text), &version); err != nil {
		return Passport{}, fmt.Errorf("%w: %w", ErrPassport, err)
	}
	if version.Schema != passportSchema {
		return Passport{}, fmt.Errorf("%w: it has schema %d, this program reads %d", ErrPassport, version.Schema, passportSchema)
	}
	var p Passport
	in := json.NewDecoder(bytes.NewReader([]byte(text)))
	in.DisallowUnknownFields()
	if err := in.Decode(&p); err != nil {
		return Passport{}, fmt.Errorf("%w: %w", ErrPassport, err)
	}
	return p, nil
}

// encodeRestored is restored.png: the picture with the passport of the result.
func encodeRestored(img *raster.Image, res manifest.Result) ([]byte, error) {
	p, err := PassportOf(res, img)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("make passport: %w", err)
	}
	file, err := raster.EncodePNG(img)
	if err != nil {
		return nil, err
	}
	return raster.SetPNGText(file, passportKeyword, string(text))
}

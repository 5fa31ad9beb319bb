package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/sweep"
	"ddiff/manifest"
)

// picturesPart bounds the pictures of one Parquet file in bytes. A part is in memory until it is complete.
const picturesPart = 64 << 20

// WritePictures writes the finished items with their pictures as Parquet files that Hugging Face's datasets reads as
// images: data/NNNNN.parquet, each with the features in its metadata, in the order of the items' identities. Put stores a
// file, from has the pictures. It returns the number of items. It holds the rows without pictures of all items, and one
// file of about 64 MiB.
func WritePictures(
	ctx context.Context, from result.Folder, results iter.Seq2[manifest.Result, error], put func(key string, data []byte) error,
) (items int, err error) {
	e := &pictureExport{from: from, put: put, limit: picturesPart}
	for r, err := range results {
		if err == nil {
			err = e.add(r)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(e.rows), e.copy(ctx)
}

// pictureExport is the state of [WritePictures].
type pictureExport struct {
	from  result.Folder
	put   func(key string, data []byte) error
	limit int // picturesPart

	rows []pictureRow // without pictures
	// cells has one copy of each cell's texts.
	cells map[sweep.Cell]*sweep.Cell

	parts, bytes int // complete files, and pictures of the present one
	buffer       bytes.Buffer
	writer       *parquet.GenericWriter[pictureRow]
}

// pictureRow is one item. The columns have the names of results.csv. All are optional, because datasets ignores the
// features of columns that are not.
type pictureRow struct {
	Item        *string      `parquet:"item,optional"`
	Image       *string      `parquet:"image,optional"`
	Task        *string      `parquet:"task,optional"`
	Params      *string      `parquet:"params,optional"`
	Sigma       *float64     `parquet:"sigma,optional"`
	Size        *string      `parquet:"size,optional"`
	Prior       *string      `parquet:"prior,optional"`
	Preset      *string      `parquet:"preset,optional"`
	Method      *string      `parquet:"method,optional"`
	Settings    *string      `parquet:"settings,optional"`
	Run         *int64       `parquet:"run,optional"`
	Seed        *uint64      `parquet:"seed,optional"`
	PSNR        *float64     `parquet:"psnr,optional"`
	SSIM        *float64     `parquet:"ssim,optional"`
	Residual    *float64     `parquet:"residual,optional"`
	Restored    *pictureCell `parquet:"restored,optional"`
	Truth       *pictureCell `parquet:"truth,optional"`
	Measurement *pictureCell `parquet:"measurement,optional"`
	Photons     *float64     `parquet:"photons,optional"`
}

// pictureCell is the storage of an Image feature: the bytes of the file, and its name.
type pictureCell struct {
	Bytes []byte `parquet:"bytes,optional"`
	Path  string `parquet:"path,optional"`

	digest string // SHA-256 of the bytes, from the result
}

// pictureFeatures is the value of the key "huggingface" in a file's metadata: the type of each column.
func pictureFeatures() (string, error) {
	features := map[string]any{}
	value := func(dtype string, columns ...string) {
		for _, c := range columns {
			features[c] = map[string]string{"dtype": dtype, "_type": "Value"}
		}
	}
	value("string", "item", "image", "task", "params", "size", "prior", "preset", "method", "settings")
	value("float64", "sigma", "psnr", "ssim", "residual", "photons")
	value("int64", "run")
	value("uint64", "seed")
	for _, c := range []string{"restored", "truth", "measurement"} {
		features[c] = map[string]string{"_type": "Image"}
	}
	data, err := json.Marshal(map[string]any{"info": map[string]any{"features": features}})
	return string(data), err
}

func (e *pictureExport) add(r manifest.Result) error {
	if r.Outcome != manifest.OutcomeDone {
		return nil
	}
	cell, err := sweep.CellOf(&r.Item)
	if err != nil {
		return err
	}
	known := e.cells[cell]
	if known == nil {
		if e.cells == nil {
			e.cells = map[sweep.Cell]*sweep.Cell{}
		}
		known = &cell
		e.cells[cell] = known
	}
	row := pictureRow{
		Item: new(r.Item.ID), Image: new(r.Item.Name), Task: &known.Task, Params: &known.Params, Sigma: new(r.Item.Sigma), Size: &known.Size,
		Prior: &known.Prior, Preset: new(r.Item.Preset), Method: &known.Method, Settings: &known.Settings,
		Run: new(int64(r.Item.Run)), Seed: new(r.Item.Seed), PSNR: r.Metrics.PSNR, SSIM: r.Metrics.SSIM, Residual: r.Metrics.Residual,
	}
	if r.Item.Photons > 0 {
		row.Photons = &known.Photons
	}
	for file, picture := range row.pictures() {
		if digest, ok := r.Artifacts[file]; ok {
			*picture = &pictureCell{Path: path.Join(r.Item.ID, file), digest: digest}
		}
	}
	e.rows = append(e.rows, row)
	return nil
}

// pictures returns the columns of the pictures by their files.
func (r *pictureRow) pictures() map[string]**pictureCell {
	return map[string]**pictureCell{
		manifest.FileRestored: &r.Restored, manifest.FileTruth: &r.Truth, manifest.FileMeasurement: &r.Measurement,
	}
}

// copy writes the rows with their pictures, ordered by the identities of the items.
func (e *pictureExport) copy(ctx context.Context) error {
	features, err := pictureFeatures()
	if err != nil {
		return err
	}
	slices.SortFunc(e.rows, func(a, b pictureRow) int { return strings.Compare(*a.Item, *b.Item) })
	for _, row := range e.rows {
		for file, picture := range row.pictures() {
			if *picture == nil {
				continue
			}
			data, err := e.from.Artifact(ctx, *row.Item, file, (*picture).digest)
			if err != nil {
				return fmt.Errorf("read %s of item %s: %w", file, *row.Image, err)
			}
			e.bytes += len(data)
			*picture = &pictureCell{Bytes: data, Path: (*picture).Path} // e.rows does not keep the bytes
		}
		if e.writer == nil {
			e.writer = parquet.NewGenericWriter[pictureRow](&e.buffer, parquet.KeyValueMetadata("huggingface", features))
		}
		if _, err := e.writer.Write([]pictureRow{row}); err != nil {
			return fmt.Errorf("write row of item %s: %w", *row.Image, err)
		}
		if e.bytes >= e.limit {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return e.flush()
}

// flush completes a file.
func (e *pictureExport) flush() error {
	if e.writer == nil {
		return nil
	}
	if err := e.writer.Close(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	err := e.put(fmt.Sprintf("data/%05d.parquet", e.parts), e.buffer.Bytes())
	e.writer, e.bytes = nil, 0
	e.parts++
	e.buffer.Reset()
	return err
}

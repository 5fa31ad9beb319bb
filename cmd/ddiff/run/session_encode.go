package run

import (
	"errors"
	"fmt"
	"io"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	restorer "ddiff/restore/picture"
)

// encodeResult writes the PNG file of a result in the format of the options, as ddiff restore writes it.
func (s *session) encodeResult(in io.Reader, out io.Writer) error {
	format, err := photograph.ParseFormat(s.format)
	if err != nil {
		return cli.Usage(fmt.Errorf("session: --encode: %w", err))
	}
	if s.quality < 1 || s.quality > 100 {
		return cli.Usage(fmt.Errorf("session: --quality: %d is not from 1 to 100", s.quality))
	}
	png, err := io.ReadAll(io.LimitReader(in, manifest.MaxFileBytes))
	if err != nil {
		return fmt.Errorf("session: read the result: %w", err)
	}
	form, err := raster.DecodePicture(png)
	if err != nil {
		return fmt.Errorf("session: read the result: %w", err)
	}
	file, err := encodeFile(form.Image, form, png, png, photograph.FileOptions{Format: format, Quality: s.quality})
	if err == nil {
		_, err = out.Write(file)
	}
	return err
}

// encodeFile returns the file of a restored picture with its passport, which is that of its PNG file. source is its measurement, data the file of that.
func encodeFile(img *raster.Image, source *raster.Picture, data, restored []byte, o photograph.FileOptions) ([]byte, error) {
	file, err := photograph.EncodeFile(img, source, data, o)
	if err != nil {
		return nil, err
	}
	marked, err := passport.Copy(file, restored)
	if errors.Is(err, passport.ErrNone) { // of a mean
		return file, nil
	}
	return marked, err
}

// withMetadata returns the PNG file of a result with what the file of its measurement says beside its pixels.
func withMetadata(png []byte, of restorer.File) ([]byte, error) {
	data := of.Data
	if data == nil {
		var err error
		if data, err = regular.Read(of.Path, manifest.MaxFileBytes); err != nil {
			return nil, err
		}
	}
	if raster.IsNPY(data) {
		return png, nil
	}
	source, err := raster.DecodePicture(data)
	if err != nil {
		return nil, err
	}
	return photograph.Beside(png, source, data, false)
}

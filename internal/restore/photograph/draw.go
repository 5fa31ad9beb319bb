package photograph

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// The names of draws.
const (
	Mask   = "mask"
	Kernel = "kernel"
)

// DrawFile is what a file contains.
type DrawFile struct {
	Draw *operator.Draw
	// Notes say what was repaired, each in a clause for people.
	Notes []string
	// Doubt says why the file is probably not what it was given as, with the remedy. Empty: there is no doubt.
	Doubt string

	form item.DrawForm
}

// Lost returns the share of the pixels that a mask drops.
func (f *DrawFile) Lost() float64 {
	lost := 0
	for _, v := range f.Draw.Data {
		if v == 0 {
			lost++
		}
	}
	return float64(lost) / float64(max(1, len(f.Draw.Data)))
}

func (f *DrawFile) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// ReadDraw decodes a mask or a kernel from a picture, or from an array in .npy or .npz. Errors wrap those of package raster and [operator.ErrParam].
//
// A mask gets 1 where a pixel is observed and 0 where it is lost. A kernel is one with which A correlates, with odd sides; of a picture its sum is 1.
func ReadDraw(name string, data []byte, form item.DrawForm) (*DrawFile, error) {
	data, err := unpack(name, data)
	if err != nil {
		return nil, err
	}
	f := &DrawFile{Draw: &operator.Draw{Name: name}, form: form}
	if raster.IsNPY(data) {
		err = f.readArray(data)
	} else if p, failed := raster.DecodePicture(data); failed != nil {
		return nil, failed
	} else if f.Draw.Dims = []int{p.Image.Height, p.Image.Width}; name == Mask {
		err = f.readMask(p, raster.IsLossy(data))
	} else {
		f.readKernel(p)
	}
	if name == Kernel && form.KernelForm == item.KernelPSF {
		slices.Reverse(f.Draw.Data) // turned by 180°: its sides are odd
	}
	return f, err
}

// readArray reads an array. Leading dimensions of length 1 are dropped.
func (f *DrawFile) readArray(data []byte) error {
	a, err := raster.DecodeNPY(data)
	if err != nil {
		return err
	}
	for len(a.Shape) > 2 && a.Shape[0] == 1 {
		a.Shape = a.Shape[1:]
	}
	f.Draw.Dims, f.Draw.Data = a.Shape, a.Data
	if len(a.Shape) != 2 {
		return nil // the operator refuses it
	}
	if f.Draw.Name == Mask {
		f.unscale()
		f.exchange()
		f.doubtMask()
		return nil
	}
	if looksInverted(f.Draw) {
		f.Doubt = "most of the kernel is bright, and its border is; a kernel is bright where the light went; is it inverted?"
	}
	f.crop()
	f.square()
	f.noteCentre()
	return nil
}

// unscale reads a mask of zeros and one other number, such as 255, as one of zeros and ones.
func (f *DrawFile) unscale() {
	top := slices.Max(f.Draw.Data)
	if !(top > 1) || math.IsInf(float64(top), 0) || slices.ContainsFunc(f.Draw.Data, func(v float32) bool { return v != 0 && v != top }) {
		return // the operator refuses other values
	}
	for i, v := range f.Draw.Data {
		f.Draw.Data[i] = v / top
	}
	f.note("its values are 0 and %g: %g counts as 1", top, top)
}

// exchange makes the ones of a mask that shows lost pixels zeros, and its zeros ones.
func (f *DrawFile) exchange() {
	if f.form.MaskShows == item.MaskLost {
		for i, v := range f.Draw.Data {
			f.Draw.Data[i] = 1 - v
		}
	}
}

// maxUnpacked is the largest number of bytes of an array in an archive.
const maxUnpacked = 256 << 20

// unpack returns the array of a .npz archive, and other files as they are. Files of MATLAB have an error with the command that converts them.
func unpack(name string, data []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(data, []byte("MATLAB ")), bytes.HasPrefix(data, []byte("\x89HDF\r\n")):
		return nil, fmt.Errorf("it is a file of MATLAB; save its array as .npy, as with: python3 -c \"import scipy.io, numpy; numpy.save('%s.npy', scipy.io.loadmat('FILE.mat')['NAME'])\": %w", name, raster.ErrFormat)
	case !bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return data, nil
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w: %w", err, raster.ErrFormat)
	}
	var names []string
	var found *zip.File
	for _, file := range z.File {
		array, ok := strings.CutSuffix(file.Name, ".npy")
		if !ok {
			continue
		}
		if names = append(names, array); array == name || found == nil {
			found = file
		}
	}
	if found == nil || len(names) > 1 && found.Name != name+".npy" {
		return nil, fmt.Errorf("the archive has the arrays %q; give one of them as .npy, or name it %s: %w", names, name, raster.ErrFormat)
	}
	r, err := found.Open()
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w: %w", err, raster.ErrFormat)
	}
	defer r.Close() // it reads memory
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("read the archive: %w", raster.ErrTruncated)
	case err != nil:
		return nil, fmt.Errorf("read the archive: %w: %w", err, raster.ErrFormat)
	case len(out) > maxUnpacked:
		return nil, fmt.Errorf("its array has more than %d bytes: %w", maxUnpacked, raster.ErrTooLarge)
	}
	return out, nil
}

package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/tiff"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
	restorer "ddiff/restore/picture"
)

const (
	// maxHeader is the largest length of the header of a request in bytes, maxPictures its largest number of pictures, maxPayload the largest number of bytes
	// behind it.
	maxHeader   = 1 << 20
	maxPictures = 1024
	maxPayload  = 4 << 30
	// bytesPerValue is the size of a float32.
	bytesPerValue = 4
)

// request is the header of a request to a session, one line of JSON. What its arrays have without a path follows: of the pictures, the mask or masks, the kernel. Missing
// fields have the defaults of ddiff restore.
type request struct {
	// ID is repeated in each answer. Positive.
	ID int `json:"id"`
	// Cancel is the ID of a request that ends now; other fields have no meaning. 0: none.
	Cancel int `json:"cancel"`

	Task    string             `json:"task"`
	Params  map[string]float64 `json:"params"`
	Sigma   *item.Sigma        `json:"sigma"` // or "auto"
	Photons *float64           `json:"photons"`
	Method  string             `json:"method"` // or "auto"
	Preset  string             `json:"preset"`
	Steps   int                `json:"steps"`
	Solver  parameter.Values   `json:"solver"`
	Seed    uint64             `json:"seed"`
	Range   *item.ValueRange   `json:"range"` // of black and white in measurements
	// Operator is the path of an operator's ONNX file, in place of Task.
	Operator string `json:"operator"`
	// KeepObserved keeps the observed pixels. Default: those of inpaint.
	KeepObserved *bool `json:"keep_observed"`
	// States are the steps after which x_t is sent, see [item.KeptStates].
	States string `json:"states"`
	// Progress: an answer after each step.
	Progress bool `json:"progress"`

	Pictures []array `json:"pictures"`
	Mask     *array  `json:"mask"`
	// Masks are those of the pictures, one each, in place of Mask.
	Masks  []array `json:"masks"`
	Kernel *array  `json:"kernel"`
	// MaskShows and KernelForm are those of ddiff restore.
	MaskShows  string `json:"mask_shows"`
	KernelForm string `json:"kernel_form"`

	err error           // the request is refused
	ctx context.Context // ends when the request is cancelled
}

// array is a measurement, mask or kernel of a request: the path of a file; the number of bytes of a file; or the shape of an array. Bytes, or the array's
// values as little-endian float32 in C order, follow the header.
type array struct {
	Path  string `json:"path,omitempty"`
	File  int64  `json:"file,omitempty"`
	Shape []int  `json:"shape,omitempty"`

	values []byte
}

func (r *request) arrays() (all []*array) {
	for i := range r.Pictures {
		all = append(all, &r.Pictures[i])
	}
	if r.Mask != nil {
		all = append(all, r.Mask)
	}
	for i := range r.Masks {
		all = append(all, &r.Masks[i])
	}
	if r.Kernel != nil {
		all = append(all, r.Kernel)
	}
	return all
}

// frames reads requests.
type frames struct {
	in   *bufio.Reader
	lost bool // a header was refused, so that its values may follow
}

// next reads the next request. What is wrong with a request is its err. After a refused header, lines that are no headers are skipped, as are empty lines always: a client
// that begins each request with an empty line is understood again. The error is that of the input.
func (f *frames) next() (*request, error) {
	for {
		line, err := f.line()
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, size, err := parse(line)
		if err == nil {
			f.lost = false
			return r, f.fill(r, size)
		}
		if !f.lost || r.ID > 0 {
			f.lost = true
			r.err = err
			return r, nil
		}
	}
}

// line reads a line, and returns at most one byte more than maxHeader of it.
func (f *frames) line() (line []byte, err error) {
	for {
		part, err := f.in.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxHeader+1-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = fmt.Errorf("the input ends in the header of a request: %w", io.ErrUnexpectedEOF)
		}
		return line, err
	}
}

// parse reads a header that is not empty, and returns the number of bytes of its arrays. With an error the request has an ID if it could be read.
func parse(line []byte) (*request, int64, error) {
	r := &request{}
	if len(line) > maxHeader {
		return r, 0, fmt.Errorf("the header of a request has more than %d bytes", maxHeader)
	}
	if line = bytes.TrimSpace(line); line[0] != '{' {
		return r, 0, errors.New("the header of a request is no JSON object; send one line of JSON, then the values of its arrays as float32")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(r)
	if err == nil && d.InputOffset() != int64(len(line)) {
		err = errors.New("more than one object in a line")
	}
	if err != nil {
		return r, 0, fmt.Errorf("read the header of a request: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	var sum int64
	for _, a := range r.arrays() {
		n, err := a.size()
		if sum += n; err == nil && sum > maxPayload {
			err = fmt.Errorf("the arrays of a request have more than %d bytes; send fewer at once", int64(maxPayload))
		}
		if err != nil {
			return r, 0, err
		}
	}
	switch {
	case r.Cancel != 0:
		return r, sum, nil
	case r.ID < 1:
		return r, 0, errors.New("id of a request is missing, or below 1")
	case len(r.Pictures) == 0 || len(r.Pictures) > maxPictures:
		return r, 0, fmt.Errorf("pictures: %d of them; send 1 to %d", len(r.Pictures), maxPictures)
	case len(r.Masks) > 0 && (r.Mask != nil || len(r.Masks) != len(r.Pictures)):
		return r, 0, fmt.Errorf("masks: %d of them for %d pictures; send one for each picture, or one mask for all", len(r.Masks), len(r.Pictures))
	}
	return r, sum, nil
}

// size is the number of bytes that follow the header.
func (a *array) size() (int64, error) {
	switch {
	case a.Path != "" && a.File == 0 && a.Shape == nil:
		return 0, nil
	case a.Path == "" && a.File > 0 && a.File <= restorer.MaxBytes && a.Shape == nil:
		return a.File, nil
	case a.Path != "" || a.File != 0:
		return 0, fmt.Errorf("an array has a path, the size of a file from 1 to %d bytes, or a shape; send one of them", restorer.MaxBytes)
	}
	const maxRank = 32 // NumPy's
	if len(a.Shape) == 0 || len(a.Shape) > maxRank {
		return 0, fmt.Errorf("shape: %d dimensions; send 1 to %d, or a path", len(a.Shape), maxRank)
	}
	n := int64(bytesPerValue)
	for _, side := range a.Shape {
		if side < 1 || int64(side) > restorer.MaxBytes/n {
			return 0, fmt.Errorf("shape: %v is empty, or has more than %d values", a.Shape, restorer.MaxBytes/bytesPerValue)
		}
		n *= int64(side)
	}
	return n, nil
}

// fill reads the values of a request. Memory grows with the bytes that come, not with those that are promised.
func (f *frames) fill(r *request, size int64) error {
	var b bytes.Buffer
	if n, err := io.CopyN(&b, f.in, size); err != nil {
		return fmt.Errorf("read the arrays of request %d: %d of %d bytes: %w", r.ID, n, size, io.ErrUnexpectedEOF)
	}
	for _, a := range r.arrays() {
		if a.Path != "" {
			continue
		}
		n, _ := a.size() // parse checked it
		if a.values = b.Next(int(n)); r.err == nil && a.File == 0 {
			r.err = a.check()
		}
	}
	return nil
}

// check refuses values that are not finite.
func (a *array) check() error {
	const exponent = 0x7f800000 // of infinities and NaN
	for i := 0; i < len(a.values); i += bytesPerValue {
		bits := binary.LittleEndian.Uint32(a.values[i:])
		if bits&exponent != exponent {
			continue
		}
		at, place := i/bytesPerValue, make([]int, len(a.Shape))
		for d := len(a.Shape) - 1; d >= 0; d-- {
			place[d], at = at%a.Shape[d], at/a.Shape[d]
		}
		return fmt.Errorf("the array of shape %v has %v at %v; remove values that are not finite", a.Shape, math.Float32frombits(bits), place)
	}
	return nil
}

// npy returns the values as a .npy file.
func (a *array) npy() ([]byte, error) {
	values := make([]float32, len(a.values)/bytesPerValue)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.values[i*bytesPerValue:]))
	}
	return raster.EncodeNPY(a.Shape, values)
}

// picture returns an array of height × width, or height × width × 3, as a picture file, with samples from 0 to 1.
func (a *array) picture() ([]byte, error) {
	channels := 1
	if len(a.Shape) == 3 {
		channels = a.Shape[2]
	}
	if len(a.Shape) < 2 || len(a.Shape) > 3 || channels != 1 && channels != 3 {
		return nil, fmt.Errorf("a picture has the shape (height, width, 3) or (height, width); the array has %v", a.Shape)
	}
	return tiff.Encode(tiff.Samples{Width: a.Shape[1], Height: a.Shape[0], Channels: channels, Bits: 8 * bytesPerValue, Data: a.values}, nil)
}

// answer is the header of an answer of a session, one line of JSON. The values of Image and the bytes of PNG follow a result.
type answer struct {
	ID int `json:"id,omitempty"`
	// Ready opens the session; Version is that of the program.
	Ready   bool   `json:"ready,omitempty"`
	Version string `json:"version,omitempty"`
	Device  string `json:"device,omitempty"`
	// Step of Steps was made of a batch of pictures.
	Step     int   `json:"step,omitempty"`
	Steps    int   `json:"steps,omitempty"`
	Pictures []int `json:"pictures,omitempty"`
	// Index is the picture of a result, in the request.
	Index  int          `json:"index,omitempty"`
	Result *item.Result `json:"result,omitempty"`
	Curves item.Trace   `json:"curves,omitempty"`
	Image  []int        `json:"image,omitempty"` // height, width, 3: float32, black is 0 and white is 1
	PNG    int          `json:"png,omitempty"`
	// States are the steps of the images that follow the file, of the shape of Image.
	States []int `json:"states,omitempty"`
	// Done ends a request: all results were sent, or Error says why not. Cancelled: it was asked to end.
	Done      bool   `json:"done,omitempty"`
	Error     string `json:"error,omitempty"`
	Cancelled bool   `json:"cancelled,omitempty"`
}

// send writes an answer, with an image, a file and states behind it.
func send(out io.Writer, a answer, img *raster.Image, png []byte, states ...*raster.Image) error {
	var b bytes.Buffer
	if img != nil {
		a.Image, a.PNG = []int{img.Height, img.Width, img.Channels}, len(png)
	}
	if err := json.NewEncoder(&b).Encode(a); err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	if img != nil {
		b.Write(appendImage(b.AvailableBuffer(), img))
		b.Write(png)
	}
	for _, x := range states {
		b.Write(appendImage(b.AvailableBuffer(), x))
	}
	_, err := out.Write(b.Bytes())
	return err
}

// appendImage appends the values of an image.
func appendImage(to []byte, img *raster.Image) []byte {
	n := img.Height * img.Width
	for i := range n {
		for c := range img.Channels {
			to = binary.LittleEndian.AppendUint32(to, math.Float32bits((img.Pix[c*n+i]+1)/2))
		}
	}
	return to
}

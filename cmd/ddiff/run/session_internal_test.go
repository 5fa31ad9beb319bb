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
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/cli"
	"ddiff/internal/fuzztest"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/manifest"
	"ddiff/restore/onnx"
)

// values are little-endian float32 of a smooth picture.
func values(n int) (b []byte) {
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(0.5+0.3*math.Sin(float64(i)/200))))
	}
	return b
}

const side = 32

// header is that of a request for one array.
func header(id int, more string) string {
	return fmt.Sprintf("\n"+`{"id":%d,"task":"denoise","sigma":0.1,"method":"dpir","steps":2,"pictures":[{"shape":[%d,%d,3]}]%s}`+"\n", id, side, side, more)
}

// client speaks to a session of this process.
type client struct {
	t     testing.TB
	in    *io.PipeWriter
	out   *bufio.Reader
	ended chan error
}

func open(t testing.TB) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t, inW, bufio.NewReader(outR), make(chan error, 1)}
	s := &session{}
	p, err := cli.OpenPrior(manifest.PriorBundled)
	if err != nil {
		t.Fatal(err)
	}
	s.prior, s.Spec.Prior, s.Spec.Batch = p, manifest.PriorBundled, 4
	go func() {
		err := s.serve(context.WithoutCancel(t.Context()), onnxtest.Runtime(t), slog.New(slog.DiscardHandler), inR, outW)
		c.ended <- errors.Join(err, outW.Close())
	}()
	if a := c.next(); !a.Ready || a.Device != "cpu" {
		t.Fatalf("%+v", a)
	}
	return c
}

func (c *client) send(parts ...any) {
	c.t.Helper()
	for _, p := range parts {
		if _, err := fmt.Fprintf(c.in, "%s", p); err != nil {
			c.t.Fatal(err)
		}
	}
}

// next reads an answer.
func (c *client) next() (a answer) {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		c.in.CloseWithError(err)
		c.t.Fatalf("%s: %v; the session ended with: %v", line, err, <-c.ended)
	}
	n := a.PNG
	if len(a.Image) == 3 {
		n += bytesPerValue * a.Image[0] * a.Image[1] * a.Image[2] * (1 + len(a.States))
	}
	if _, err := io.CopyN(io.Discard, c.out, int64(n)); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// last reads the answers to a request, and returns the results and the last one.
func (c *client) last(id int) (results []answer, end answer) {
	c.t.Helper()
	for {
		a := c.next()
		if a.ID != id {
			c.t.Fatalf("an answer to %d: %+v", id, a)
		}
		if a.Done {
			return results, a
		}
		if a.Result != nil {
			results = append(results, a)
		}
	}
}

// TestSession: each bad frame has one clear error, after which the session restores as before.
func TestSession(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds: make test-all")
	}
	c := open(t)
	y := values(3 * side * side)
	npy := filepath.Join(t.TempDir(), "y.npy")
	data, err := (&array{Shape: []int{3, side, side}, values: y}).npy()
	if err == nil {
		err = os.WriteFile(npy, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	nan := slices.Clone(y)
	copy(nan[bytesPerValue*3*side:], []byte{0, 0, 0xc0, 0x7f})
	id := 0
	works := func() {
		t.Helper()
		id++
		c.send(header(id, ""), y)
		results, end := c.last(id)
		if len(results) != 1 || end.Error != "" || !slices.Equal(results[0].Image, []int{side, side, 3}) || len(results[0].Curves["timestep"]) != 2 {
			t.Fatalf("%+v", end)
		}
	}
	works()
	for _, bad := range []struct {
		name   string
		frame  []any
		id     int
		want   string
		result bool // the error is that of a picture
	}{
		{"no JSON", []any{"\nhello\n"}, 0, "is no JSON object", false},
		{"truncated header", []any{"\n" + `{"id":900,"pictures":[{"sha` + "\n", y}, 0, "read the header of a request", false},
		{"two objects", []any{"\n{\"id\":900} {}\n"}, 900, "more than one object", false},
		{"unknown field", []any{header(901, `,"speed":1`), y}, 901, "unknown field", false},
		{"long header", []any{"\n{\"id\":", strings.Repeat(" ", maxHeader), "1}\n"}, 0, "more than 1048576 bytes", false},
		{"no id", []any{header(0, ""), y}, 0, "id of a request is missing", false},
		{"no pictures", []any{"\n{\"id\":902,\"task\":\"denoise\"}\n"}, 902, "send 1 to 1024", false},
		{"absurd lengths", []any{"\n{\"id\":903,\"pictures\":[{\"shape\":[1000000000,1000000000,3]}]}\n", y}, 903, "has more than 268435456 values", false},
		{"overflow", []any{"\n{\"id\":904,\"pictures\":[{\"shape\":[9223372036854775807,3]}]}\n"}, 904, "has more than", false},
		{"negative length", []any{"\n{\"id\":905,\"pictures\":[{\"shape\":[-1,3]}]}\n"}, 905, "is empty", false},
		{"too much together", []any{"\n{\"id\":906,\"pictures\":[" + strings.Repeat(`{"shape":[16384,16384]},`, 4) + "{\"shape\":[1]}]}\n"}, 906, "send fewer at once", false},
		{"not finite", []any{header(907, ""), nan}, 907, "has NaN at [1 0 0]", false},
		{"wrong shape", []any{strings.Replace(header(908, ""), "[32,32,3]", "[3,32,32]", 1), y}, 908, "the array has [3 32 32]", false},
		{"wrong task", []any{strings.Replace(header(909, ""), "denoise", "sharpen", 1), y}, 909, "unknown task", false},
		{"wrong range", []any{header(910, `,"range":[0,0.01]`), y}, 910, "values lie between", true},
		{"mask of another size", []any{header(911, `,"mask":{"shape":[5,7]}`), y, values(35)}, 911, "mask", true},
		{"wrong states", []any{header(913, `,"states":"every"`), y}, 913, "keep_states", false},
		{"nothing observed", []any{header(916, `,"keep_observed":true`), y}, 916, "only in inpainting with a mask", false},
		{"no operator file", []any{strings.Replace(header(914, ""), `"task":"denoise"`, `"operator":"missing.onnx"`, 1), y}, 914, "no such file", false},
		{"a task and an operator", []any{header(915, `,"operator":"missing.onnx"`), y}, 915, "send one of them", false},
		{"a path and a file", []any{"\n" + `{"id":917,"task":"denoise","pictures":[{"path":"a.png","file":3}]}` + "\n"}, 917, "send one of them", false},
		{"a large file", []any{"\n" + `{"id":918,"task":"denoise","pictures":[{"file":1099511627776}]}` + "\n"}, 918, "send one of them", false},
		{"no picture file", []any{"\n" + `{"id":919,"task":"denoise","pictures":[{"file":5}]}` + "\nhello"}, 919, "array0", true},
		{"masks of others", []any{header(920, `,"masks":[{"shape":[32,32]},{"shape":[32,32]}]`), y}, 920, "masks: 2 of them for 1 pictures", false},
		{"an array without a range", []any{"\n" + `{"id":921,"task":"denoise","pictures":[{"path":"` + npy + `"}]}` + "\n"}, 921, "give --measurement-range LOW,HIGH", false},
		{"missing file", []any{"\n{\"id\":912,\"task\":\"denoise\",\"pictures\":[{\"path\":\"missing.png\"}]}\n"}, 912, "no such file", true},
	} {
		c.send(bad.frame...)
		results, end := c.last(bad.id)
		if bad.result && len(results) == 1 {
			end = results[0]
		}
		if !strings.Contains(end.Error, bad.want) || strings.Contains(end.Error, "\n") {
			t.Errorf("%s: %+v, want %q", bad.name, end, bad.want)
		}
		works()
	}
	if err := errors.Join(c.in.Close(), <-c.ended); err != nil {
		t.Error(err)
	}
}

// TestSessionOperator: an operator's file takes the place of a task, a file that changes is read again, and states are sent.
func TestSessionOperator(t *testing.T) {
	c := open(t)
	file := filepath.Join(t.TempDir(), "half.onnx")
	for id, factor := range []float32{0.5, 1, 1} {
		g := onnx.NewGraph(onnx.DefaultOpset)
		x := g.Input("x", onnx.Float, 1, 3, side, side)
		g.Output("y", g.Mul(g.Slice(x, 3, 0, side/2), g.Scalar(factor)))
		data, err := g.Marshal("half")
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.send(fmt.Sprintf("\n"+`{"id":%d,"operator":%q,"sigma":0.01,"steps":3,"states":"0,2,7","pictures":[{"shape":[3,%d,%d]}]}`+"\n", id+1, file, side, side/2), values(3*side*side/2))
		results, end := c.last(id + 1)
		if len(results) != 1 || end.Error != "" || !slices.Equal(results[0].States, []int{0, 2}) {
			t.Fatalf("%+v %+v", results, end)
		}
		if it := results[0].Result.Item; it.Task != "half" || it.Operator.SHA256 != regular.SHA256(data) || it.Method != "ddiff" {
			t.Errorf("%+v", it)
		}
	}
	if err := errors.Join(c.in.Close(), <-c.ended); err != nil {
		t.Error(err)
	}
}

// TestSessionCancel: a request ends within a step, also before it begins, and the next one is restored. A cancellation of another request does nothing.
func TestSessionCancel(t *testing.T) {
	c := open(t)
	y := values(3 * side * side)
	long := strings.Replace(header(1, `,"progress":true`), `"steps":2`, `"steps":1000`, 1)
	c.send(long, y)
	for c.next().Step < 2 {
	}
	c.send(`{"cancel":7}`+"\n", `{"cancel":1}`+"\n")
	if results, end := c.last(1); len(results) != 0 || !end.Cancelled {
		t.Errorf("%d results, %+v", len(results), end)
	}
	c.send(strings.Replace(long, `"id":1`, `"id":2`, 1), y, `{"cancel":2}`+"\n")
	if _, end := c.last(2); !end.Cancelled {
		t.Errorf("%+v", end)
	}
	c.send(header(3, ""), y)
	if results, end := c.last(3); len(results) != 1 || end.Error != "" {
		t.Errorf("%+v", end)
	}
	c.send(header(4, ""), y[:100])
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-c.ended; !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "request 4: 100 of 12288 bytes") {
		t.Errorf("%v", err)
	}
}

// FuzzFrames: any input gives requests or errors without much memory, and a request after it is understood.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(header(1, "")))
	f.Add([]byte(`{"cancel":1}` + "\n"))
	f.Add([]byte(`{"id":1,"pictures":[{"shape":[2]}],"mask":{"shape":[1]}}` + "\n0123456789ab"))
	f.Add([]byte("\n\n{\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzztest.Limit(t, 16<<20+64*len(data), func() { readAll(t, data) })
	})
}

func readAll(t *testing.T, data []byte) {
	t.Helper()
	in := frames{in: bufio.NewReader(bytes.NewReader(append(data, "\n\n{\"cancel\":123454321}\n"...)))}
	for {
		r, err := in.next()
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) { // the promised arrays took the last request
				t.Fatal(err)
			}
			return
		}
		if r.err == nil && r.Cancel == 123454321 {
			return
		}
		if r.err != nil && r.err.Error() == "" {
			t.Error("a request is refused without a reason")
		}
	}
}

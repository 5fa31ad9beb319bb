package prior_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// change rewrites a model file, and returns it.
func change(t *testing.T, path string, by func(m *onnxpb.ModelProto)) []byte {
	t.Helper()
	m := &onnxpb.ModelProto{}
	must(t, proto.Unmarshal(read(t, path), m))
	by(m)
	data, err := proto.Marshal(m)
	must(t, err)
	writeFile(t, path, data)
	return data
}

// moveOut moves the weights of a model file to NAME.data, each on a page of its own.
func moveOut(t *testing.T, path string) {
	t.Helper()
	var all bytes.Buffer
	change(t, path, func(m *onnxpb.ModelProto) {
		for _, c := range m.Graph.Initializer {
			all.Write(make([]byte, -all.Len()&4095))
			c.DataLocation = onnxpb.TensorProto_EXTERNAL
			for _, e := range [][2]string{{"location", filepath.Base(path) + ".data"}, {"offset", strconv.Itoa(all.Len())}, {"length", strconv.Itoa(len(c.RawData))}} {
				c.ExternalData = append(c.ExternalData, &onnxpb.StringStringEntryProto{Key: e[0], Value: e[1]})
			}
			all.Write(c.RawData)
			c.RawData = nil
		}
	})
	writeFile(t, path+".data", all.Bytes())
}

// predictions are those of the network for one image of noise.
func predictions(t *testing.T, p *prior.Prior, precision onnxruntime.Precision) []float32 {
	t.Helper()
	n, err := p.Compile(onnxtest.Runtime(t), 1, 16, 16, precision)
	must(t, err)
	defer n.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n.X.F32 {
		n.X.F32[i] = float32(r.NormFloat64())
	}
	n.T.I64[0] = 300
	must(t, n.Run(t.Context()))
	return slices.Clone(n.Y.F32)
}

// TestMappedWeights: a network whose large weights stay in the data file predicts what it predicts with embedded ones, bit by bit, in each precision, and is
// rewritten as it is.
func TestMappedWeights(t *testing.T) {
	t.Parallel()
	random, err := onnxtest.Network(16)
	must(t, err)
	bundled, err := prior.Read(prior.Bundled)
	must(t, err)
	for name, model := range map[string][]byte{"random": random, "bundled": bundled} {
		path := filepath.Join(t.TempDir(), "p.onnx")
		writeFile(t, path, model)
		embedded, err := prior.Open(path)
		must(t, err)
		moveOut(t, path)
		mapped, err := prior.OpenMapped(path)
		must(t, err)
		outside := 0
		for _, c := range mapped.Network().Proto().Graph.Initializer {
			if c.DataLocation == onnxpb.TensorProto_EXTERNAL {
				outside++
			}
		}
		if all := len(mapped.Network().Proto().Graph.Initializer); outside == 0 || outside == all || mapped.Parameters() != embedded.Parameters() {
			t.Fatalf("%s: %d of %d weights stay in the file", name, outside, all)
		}
		for _, precision := range []onnxruntime.Precision{onnxruntime.FP32, onnxruntime.FP16} {
			want := predictions(t, embedded, precision)
			if got := predictions(t, mapped, precision); !slices.Equal(got, want) {
				t.Errorf("%s, %s: mapped weights change the prediction", name, precision)
			}
		}
		_, want := embedded.Network().FuseGroupNorm()
		if _, got := mapped.Network().FuseGroupNorm(); got != want {
			t.Errorf("%s: %d rewritten nodes, %d with mapped weights", name, want, got)
		}
	}
}

// TestMappedDigest: the digest of a prior with data files is one of all of its weights, and not of its place.
func TestMappedDigest(t *testing.T) {
	t.Parallel()
	model, err := onnxtest.Network(16)
	must(t, err)
	digest := func(change byte) string {
		path := filepath.Join(t.TempDir(), "p.onnx")
		writeFile(t, path, model)
		moveOut(t, path)
		weights := read(t, path+".data")
		weights[len(weights)-1] ^= change
		writeFile(t, path+".data", weights)
		p, err := prior.OpenMapped(path)
		must(t, err)
		return p.SHA256
	}
	if one, again, other := digest(0), digest(0), digest(1); one != again || one == other {
		t.Errorf("digests %s, %s and of other weights %s", one, again, other)
	}
}

// TestMappedRange: the weights in a file decide, as others do, which operations compute in float16.
func TestMappedRange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "random.onnx")
	model, err := onnxtest.Network(16)
	must(t, err)
	writeFile(t, path, model)
	change(t, path, func(m *onnxpb.ModelProto) {
		for _, c := range m.Graph.Initializer {
			if len(c.RawData) > 1<<18 && onnxpb.TensorProto_DataType(c.DataType) == onnxpb.TensorProto_FLOAT {
				binary.LittleEndian.PutUint32(c.RawData, math.Float32bits(1e5)) // infinite in float16
				break
			}
		}
	})
	embedded, err := prior.Open(path)
	must(t, err)
	moveOut(t, path)
	mapped, err := prior.OpenMapped(path)
	must(t, err)
	want := predictions(t, embedded, onnxruntime.FP16)
	if got := predictions(t, mapped, onnxruntime.FP16); !slices.Equal(got, want) || math.IsNaN(float64(got[0])) {
		t.Error("mapped weights change the prediction")
	}
}

// TestLargeBundle: a latent prior of more than 2 GiB is read from its folder, and only from there.
func TestLargeBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("writes two gigabytes: make test-all")
	}
	t.Parallel()
	const rows = 1<<29 + 1 // of 4 bytes, zeros
	dir := writeBundle(t, nil, parts{"unet": func(g *onnx.Graph) {
		z, at := g.Input("z", onnx.Float, -1, 1, -1, -1), g.Input("t", onnx.Int64, -1)
		table := g.Const([]float32{0}, 1)
		g.Output("eps", g.Add(g.Mul(z, g.Scalar(0.5)), g.Apply("Gather", onnx.Float, []int{-1}, nil, table, at)))
	}})
	path := filepath.Join(dir, "unet.onnx")
	data := change(t, path, func(m *onnxpb.ModelProto) {
		for _, c := range m.Graph.Initializer {
			if len(c.Dims) == 1 {
				c.Dims, c.RawData, c.DataLocation = []int64{rows}, nil, onnxpb.TensorProto_EXTERNAL
				c.ExternalData = []*onnxpb.StringStringEntryProto{{Key: "location", Value: "table"}}
			}
		}
	})
	writeFile(t, filepath.Join(dir, "table"), nil)
	must(t, os.Truncate(filepath.Join(dir, "table"), 4*rows)) // takes no space
	c, err := prior.ReadBundleCard(dir)
	must(t, err)
	c.Files["unet"] = prior.BundleFile{File: "unet.onnx", SHA256: sha(data)}
	writeCard(t, dir, c)

	p, err := prior.Open(dir)
	must(t, err)
	if _, err := p.Verify(t.Context(), onnxtest.Runtime(t)); err != nil || p.Parameters() < rows {
		t.Errorf("%d parameters, %v", p.Parameters(), err)
	}
	if _, err := modelfile.ReadFile(path); !errors.Is(err, regular.ErrTooLarge) || !strings.Contains(err.Error(), "limit of one graph; export the model with --float16") {
		t.Errorf("the data in one graph: %v", err)
	}
	if _, err := prior.Read(dir); !errors.Is(err, regular.ErrTooLarge) || !strings.Contains(err.Error(), "--float16") {
		t.Errorf("the bundle for a cluster: %v", err)
	}
	must(t, os.Truncate(filepath.Join(dir, "table"), 4*rows-1))
	if _, err := prior.Open(dir); !errors.Is(err, modelfile.ErrExternal) {
		t.Errorf("a table of another size: %v", err)
	}
}

package prior_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.onnx")
	must(t, os.WriteFile(path, data, 0o640))
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

// graphBytes returns the encoded graph of a model file.
func graphBytes(t *testing.T, data []byte) []byte {
	t.Helper()
	m := &onnxpb.ModelProto{}
	must(t, proto.Unmarshal(data, m))
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Graph)
	must(t, err)
	return raw
}

func TestSetCard(t *testing.T) {
	t.Parallel()
	whole, err := prior.Read(prior.Bundled)
	must(t, err)
	path := write(t, whole)
	must(t, prior.SetCard(path, path, map[string]string{"ddiff.name": "another", "ddiff.training": "none"}))
	p, err := prior.Open(path)
	if err != nil || p.Card.Name != "another" || p.Card.Training != "none" || p.Card.License == "" {
		t.Errorf("card %+v, error %v", p.Card, err)
	}
	if !bytes.Equal(graphBytes(t, read(t, path)), graphBytes(t, whole)) {
		t.Error("SetCard changed the graph")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}

	other := filepath.Join(filepath.Dir(path), "other.onnx")
	before := read(t, path)
	must(t, prior.SetCard(path, other, map[string]string{"ddiff.name": "third"}))
	if p, err := prior.Open(other); err != nil || p.Card.Name != "third" || !bytes.Equal(read(t, path), before) {
		t.Errorf("error %v; SetCard must not change the source", err)
	}
}

// TestSetCardIncrementally writes a card entry by entry; SetCard accepts incomplete cards.
func TestSetCardIncrementally(t *testing.T) {
	t.Parallel()
	empty := map[string]string{}
	must, _ := prior.Keys()
	for _, k := range must {
		empty[k] = ""
	}
	path := write(t, model(t, 1, 2, onnx.Float, empty))
	for _, k := range must {
		value := map[string]string{"channels": "1", "learned_variance": "true"}[k]
		if value == "" {
			value = card["ddiff."+k]
		}
		if err := prior.SetCard(path, path, map[string]string{"ddiff." + k: value}); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
	}
	if p, err := prior.Open(path); err != nil || !p.Card.LearnedVariance {
		t.Errorf("error %v", err)
	}
}

func TestSetCardErrors(t *testing.T) {
	t.Parallel()
	whole := model(t, 3, 3, onnx.Int64, nil)
	for name, c := range map[string]struct {
		data    []byte
		entries map[string]string
		kind    error
		want    string
	}{
		"channels":       {whole, map[string]string{"ddiff.channels": "many"}, prior.ErrCard, "must be 1, for grey images, or 3"},
		"prediction":     {whole, map[string]string{"ddiff.prediction": "noise"}, prior.ErrCard, "must be epsilon, sample or velocity"},
		"schedule":       {whole, map[string]string{"ddiff.schedule": "linear"}, prior.ErrCard, "schedule"},
		"text":           {[]byte("this is no model"), map[string]string{"ddiff.name": "x"}, modelfile.ErrModel, "cut short (16 bytes)"},
		"empty":          {nil, map[string]string{"ddiff.name": "x"}, modelfile.ErrModel, "cut short (0 bytes)"},
		"cut short":      {whole[:len(whole)/2], map[string]string{"ddiff.name": "x"}, modelfile.ErrModel, "not an ONNX file, or cut short"},
		"cut at the end": {whole[:len(whole)-1], map[string]string{"ddiff.name": "x"}, modelfile.ErrModel, "not an ONNX file, or cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, c.data)
			err := prior.SetCard(path, path, c.entries)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %v with %q in one line", err, c.kind, c.want)
			}
			if !bytes.Equal(read(t, path), c.data) {
				t.Error("SetCard changed the file")
			}
			if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
				t.Errorf("%d files, want 1; error %v", len(entries), err)
			}
		})
	}
}

func TestSetCardMissingPaths(t *testing.T) {
	t.Parallel()
	path := write(t, model(t, 3, 3, onnx.Int64, nil))
	nowhere := filepath.Join(t.TempDir(), "no", "p.onnx")
	if err := prior.SetCard(path, nowhere, map[string]string{"ddiff.name": "x"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want ErrNotExist", err)
	}
	if err := prior.SetCard(nowhere, path, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want ErrNotExist", err)
	}
}

// TestSetCardBesideExternalData: a card is not written to where the model would lack its data.
func TestSetCardBesideExternalData(t *testing.T) {
	t.Parallel()
	whole, err := prior.Read(prior.Bundled)
	must(t, err)
	m := &onnxpb.ModelProto{}
	must(t, proto.Unmarshal(whole, m))
	m.Graph.Initializer[0].RawData, m.Graph.Initializer[0].DataLocation = nil, onnxpb.TensorProto_EXTERNAL
	data, err := proto.Marshal(m)
	must(t, err)
	path, other := write(t, data), filepath.Join(t.TempDir(), "other.onnx")
	if err := prior.SetCard(path, other, nil); !errors.Is(err, modelfile.ErrExternal) {
		t.Errorf("another directory: %v", err)
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link") // another name of the directory
	must(t, os.Symlink(filepath.Dir(path), link))
	must(t, prior.SetCard(path, filepath.Join(link, "other.onnx"), nil))
}

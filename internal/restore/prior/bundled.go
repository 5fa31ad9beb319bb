package prior

import (
	_ "embed" // the bundled prior
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/modelfile"
)

// The priors of the project. Presets that are no publication's were chosen for Bundled and hold for both (docs/prior.md).
const (
	// Bundled is the name of the prior inside the program: 4.2 million weights.
	Bundled = "bundled"
	// Base is the name of the larger prior, base.onnx: 15.3 million weights, four times the time of a step. It is beside the
	// program: in ../lib/ddiff from its directory, where releases have it, or in ../priors, as in the source tree, or in priors of the
	// working directory.
	Base = "bundled:base"

	baseDigest = "288ce326170c589683b72a696207c3bf7c9e9be40174369aef393b08d70a41b5"
)

//go:embed bundled/prior.onnx
var bundled []byte

var bundledDigest = sync.OnceValue(func() string { return regular.SHA256(bundled) })

// Own returns the names of the project's priors, Bundled and Base, by SHA-256 in lower-case hex.
func Own() map[string]string {
	return map[string]string{bundledDigest(): Bundled, baseDigest: Base}
}

// readBase reads base.onnx beside the program.
func readBase() ([]byte, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", Base, err)
	}
	return readBaseOf(filepath.Dir(filepath.Dir(program)))
}

func readBaseOf(root string) ([]byte, error) {
	places := []string{filepath.Join(root, "lib", "ddiff", "base.onnx"), filepath.Join(root, "priors", "base.onnx"), filepath.Join("priors", "base.onnx")}
	for _, path := range places {
		data, err := regular.Read(path, modelfile.MaxFileBytes)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", Base, err)
		}
		if regular.SHA256(data) != baseDigest {
			return nil, fmt.Errorf("%s: %s is another file than this version's; unpack the release again, or give the file's path", Base, path)
		}
		return data, nil
	}
	return nil, fmt.Errorf("%s is not installed: %s does not exist; unpack a release with it, or give the path of priors/base.onnx of a clone", Base, places[0])
}

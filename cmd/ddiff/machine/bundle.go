package machine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/redact"
	"ddiff/internal/regular"
)

// bundle collects what a person who helps needs to know. It has no value of an environment variable, no user, password or query of an address, and no address
// of notifications, whose path may be a secret.
type bundle struct {
	names []string
	files map[string][]byte
}

// add adds a record as JSON without secrets, or in its place the error that prevented it: a bundle of a cluster that fails is the most useful one.
func (b *bundle) add(name string, record any, err error) {
	data, encoding := json.Marshal(record)
	if err = errors.Join(err, encoding); err != nil {
		record = map[string]string{"error": err.Error()}
		data, _ = json.Marshal(record) // of texts
	}
	var plain any
	if json.Unmarshal(data, &plain) == nil {
		data, _ = json.MarshalIndent(clean("", plain), "", "  ") // of what JSON has
	}
	b.names, b.files[name] = append(b.names, name), data
}

// clean returns a decoded JSON value without secrets.
func clean(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = clean(key, v[key])
		}
	case []any:
		for i := range v {
			v[i] = clean(name, v[i])
		}
	case string:
		if name == "notify" {
			return "(removed)"
		}
		return redact.Text(v)
	}
	return value
}

// answerLimit is the time for the answers of a coordinator, which may hang.
const answerLimit = 30 * time.Second

// collect fills a bundle. Without a client it has this machine only.
func collect(ctx context.Context, findings []finding, client *api.Client, limit time.Duration) *bundle {
	b := &bundle{files: map[string][]byte{}}
	b.add("version.json", map[string]any{
		"version": cli.Version(), "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH, "cpus": runtime.NumCPU(), "time": time.Now().UTC(),
	}, nil)
	b.add("devices.json", findings, nil)
	var names []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	b.add("environment.json", names, nil)
	if client != nil {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		campaigns, err := client.Campaigns(ctx, false)
		b.add("campaigns.json", campaigns, err)
		workers, err := client.Workers(ctx)
		b.add("workers.json", workers, err)
	}
	return b
}

// write creates the file as a tar.gz that only its user can read.
func (b *bundle) write(path string) error {
	var file bytes.Buffer
	z := gzip.NewWriter(&file)
	t := tar.NewWriter(z)
	for _, name := range b.names {
		data := b.files[name]
		t.WriteHeader(&tar.Header{Name: "ddiff-bundle/" + name, Mode: 0o600, Size: int64(len(data)), ModTime: time.Now()}) //nolint:errcheck // Close has the error
		t.Write(data)                                                                                                      //nolint:errcheck // Close has the error
	}
	err := errors.Join(t.Close(), z.Close())
	if err == nil {
		err = regular.New(path, file.Bytes(), 0o600)
	}
	if errors.Is(err, os.ErrExist) {
		return cli.Usage(fmt.Errorf("--bundle: %s exists; give another name", path))
	}
	if err != nil {
		return fmt.Errorf("--bundle: %w", err)
	}
	return nil
}

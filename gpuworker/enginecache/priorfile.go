package enginecache

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"ddiff/internal/regular"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/prior"
	"ddiff/storage"
)

var (
	// ErrPriorFile: the prior of a campaign is not in the store, has another digest, or is not a prior. A retry would not
	// help.
	ErrPriorFile = errors.New("the campaign's prior cannot be used")
	// ErrOperatorFile is ErrPriorFile for an operator of a campaign.
	ErrOperatorFile = errors.New("the campaign's operator cannot be used")
)

// lockPause is the pause between two attempts to lock a prior that another process fetches.
const lockPause = 200 * time.Millisecond

// hexDigest matches a SHA-256.
var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// priorFiles caches priors, or operators, on the local disk, as DIR/SHA256.onnx. Several processes may share the directory:
// one of them fetches a file, the others wait. Intact files are never deleted.
type priorFiles struct {
	dir   string
	store getter
	// kind names the files in messages: "prior" or "operator". unusable is the error of a file that a retry would not help.
	kind     string
	unusable error
}

// getter is the store of priors.
type getter interface {
	Get(ctx context.Context, key string) ([]byte, error)
}

// read returns the bytes of a prior. It fetches a prior that is not cached.
func (p priorFiles) read(ctx context.Context, from manifest.PriorFile) ([]byte, error) {
	if !hexDigest.MatchString(from.SHA256) {
		return nil, fmt.Errorf("%w: %q is not a SHA-256", p.unusable, from.SHA256)
	}
	if from.Key == "" {
		data, err := prior.Read(prior.Bundled)
		if err == nil && regular.SHA256(data) != from.SHA256 {
			err = fmt.Errorf("%w: the campaign uses the bundled prior %.12s, this version bundles %.12s; run the version that submitted it",
				p.unusable, from.SHA256, regular.SHA256(data))
		}
		return data, err
	}
	if data, err := p.cached(from); !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	lock, err := p.lock(ctx, from.SHA256)
	if err != nil {
		return nil, fmt.Errorf("fetch %s %s: %w", p.kind, from.Key, err)
	}
	defer lock.Unlock() //nolint:errcheck // the kernel unlocks the file when the process ends
	// Another process may have fetched the prior while this one waited for the lock.
	if data, err := p.cached(from); !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	return p.fetch(ctx, from)
}

func (p priorFiles) file(sha string) string { return filepath.Join(p.dir, sha+".onnx") }

// cached reads a prior from disk. It deletes a damaged file and returns fs.ErrNotExist.
func (p priorFiles) cached(from manifest.PriorFile) ([]byte, error) {
	file := p.file(from.SHA256)
	data, err := regular.Read(file, modelfile.MaxFileBytes)
	if err != nil || regular.SHA256(data) == from.SHA256 {
		return data, err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("delete damaged %s: %w", p.kind, err)
	}
	return nil, fs.ErrNotExist
}

// fetch copies a prior from the store to the disk.
func (p priorFiles) fetch(ctx context.Context, from manifest.PriorFile) ([]byte, error) {
	data, err := p.store.Get(ctx, from.Key)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrTooLarge) || errors.Is(err, storage.ErrBadKey) {
		return nil, fmt.Errorf("%w: fetch %s: %w", p.unusable, from.Key, err)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s %s: %w", p.kind, from.Key, err)
	}
	if got := regular.SHA256(data); got != from.SHA256 {
		return nil, fmt.Errorf("%w: the SHA-256 of %s is %.12s, the campaign expects %.12s; submit the campaign again", p.unusable, from.Key, got, from.SHA256)
	}
	if err := regular.Replace(p.file(from.SHA256), data, 0o600); err != nil {
		return nil, fmt.Errorf("cache %s %s: %w", p.kind, from.Key, err)
	}
	return data, nil
}

// lock waits until no other process fetches the prior, and locks it.
func (p priorFiles) lock(ctx context.Context, sha string) (*storage.Lock, error) {
	for {
		lock, err := storage.AcquireLock(filepath.Join(p.dir, "locks", sha))
		if err == nil || !errors.Is(err, storage.ErrLocked) {
			return lock, err
		}
		if err := retry.Sleep(ctx, lockPause); err != nil {
			return nil, err
		}
	}
}

// checkWritable creates the directory and a file in it.
func (p priorFiles) checkWritable() error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	probe := filepath.Join(p.dir, ".probe-"+rand.Text())
	if err := os.WriteFile(probe, nil, 0o644); err != nil {
		return err
	}
	return os.Remove(probe)
}

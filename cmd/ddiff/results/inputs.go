package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/gpuworker/job"
	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore/operator"
)

// inputs are the sources of an image that is restored again.
type inputs struct {
	// item is the item of the passport, with the paths at which its sources were found.
	item manifest.Item
	// stored holds the arrays beside the image. They replace the sources if one is missing; reason names it.
	stored *job.Stored
	reason string
}

// findInputs finds the sources of the item at their old paths or below root, or else reads the arrays beside the
// image.
func findInputs(ctx context.Context, out *output, root string) (inputs, error) {
	in := inputs{item: out.passport.Item}
	places := map[string]**manifest.Source{
		"image": &in.item.Image, "measurement": &in.item.Measurement, "mask": &in.item.Mask, "kernel": &in.item.Kernel,
	}
	all := in.item.Sources()
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path, err := locate(ctx, *all[name], root)
		if err != nil {
			missing = append(missing, err.Error())
		}
		*places[name] = &manifest.Source{Path: path, SHA256: all[name].SHA256}
	}
	if len(missing) == 0 {
		return in, nil
	}
	in.reason, in.stored = strings.Join(missing, ", "), &job.Stored{}
	for _, name := range slices.Sorted(maps.Keys(out.passport.Data)) {
		data := &in.stored.Measurement
		if name != manifest.FileData {
			if data = &in.stored.Draw; in.item.Mask == nil && in.item.Kernel == nil {
				continue // the operator draws it again from the seed
			}
		}
		var err error
		if *data, err = readArray(ctx, out, name); err != nil {
			return in, cli.Usage(fmt.Errorf("replay %s: %s, and %w; give the directory of the source with --root", out.File, in.reason, err))
		}
	}
	return in, nil
}

// readArray reads an array beside the image and checks its digest.
func readArray(ctx context.Context, out *output, name string) ([]byte, error) {
	path := out.beside(filepath.Base(name))
	data, err := out.from.get(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist", out.from.show(path))
	}
	if err == nil && regular.SHA256(data) != out.passport.Data[name] {
		return nil, fmt.Errorf("%s was changed", out.from.show(path))
	}
	return data, err
}

// places lists the paths at which a source may be: its path, and below root any end of its path.
func places(path, root string) []string {
	paths := []string{path}
	if root == "" {
		return paths
	}
	for rest := filepath.ToSlash(path); rest != ""; _, rest, _ = strings.Cut(rest, "/") {
		if filepath.IsLocal(rest) {
			paths = append(paths, filepath.Join(root, rest))
		}
	}
	return paths
}

// locate finds the bytes of a source: at its path, or below root at any end of its path.
func locate(ctx context.Context, s manifest.Source, root string) (string, error) {
	reason := "is gone"
	for _, path := range places(s.Path, root) {
		sum, err := regular.Digest(ctx, path, manifest.MaxFileBytes)
		if err != nil {
			continue
		}
		if sum == s.SHA256 {
			return path, nil
		}
		reason = "has changed"
	}
	if manifest.IsAddress(s.Path) {
		reason = "is on a server and its query, which may be a signature, is not recorded; download it and give its directory with --root"
	}
	return "", fmt.Errorf("%s %s", s.Public(), reason)
}

// findOperator finds the operator file of an item at its old path or below root.
func findOperator(from manifest.Source, root string) (*operator.File, error) {
	reason := fs.ErrNotExist
	for _, path := range places(from.Path, root) {
		f, err := campaign.OpenOperator(path)
		if err == nil && f.SHA256 == from.SHA256 {
			return f, nil
		}
		if err == nil {
			reason = fmt.Errorf("the SHA-256 of %s is %.12s", path, f.SHA256)
		}
	}
	return nil, fmt.Errorf("%w %s: want the file with the SHA-256 %.12s: %w; give its directory with --root", cli.ErrOperator, from.Public(), from.SHA256, reason)
}

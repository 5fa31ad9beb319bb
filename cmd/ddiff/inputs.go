package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/gpuworker"
	"ddiff/manifest"
)

// inputs are what an image is restored from again.
type inputs struct {
	// item is that of the passport, with the paths at which its files were found.
	item manifest.Item
	// stored are the arrays beside the image, when not all of the files were found; reason
	// says which was not.
	stored *gpuworker.Stored
	reason string
}

// findInputs finds the files of the item, where they were or below root, or else the arrays
// beside the image.
func findInputs(ctx context.Context, out *output, root string) (inputs, error) {
	in := inputs{item: out.passport.Item}
	places := map[string]**manifest.Source{
		"image": &in.item.Image, "measurement": &in.item.Measurement, "mask": &in.item.Mask, "kernel": &in.item.Kernel,
	}
	all := sources(in.item)
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
	in.reason, in.stored = strings.Join(missing, ", "), &gpuworker.Stored{}
	for _, name := range slices.Sorted(maps.Keys(out.passport.Data)) {
		read := &in.stored.Measurement
		if name != manifest.FileData {
			if read = &in.stored.Draw; in.item.Mask == nil && in.item.Kernel == nil {
				continue // it is drawn again
			}
		}
		var err error
		if *read, err = readArray(ctx, out, name); err != nil {
			return in, usageError{fmt.Errorf("replay %s: %s, and %w; say where the source is with --root", out.File, in.reason, err)}
		}
	}
	return in, nil
}

// readArray reads an array beside the image, and holds it against its digest.
func readArray(ctx context.Context, out *output, name string) ([]byte, error) {
	path := out.beside(filepath.Base(name))
	data, err := manifest.Files{}.Get(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s", path)
	}
	if err == nil && digest(data) != out.passport.Data[name] {
		return nil, fmt.Errorf("%s was changed", path)
	}
	return data, err
}

// locate finds the bytes of a source: where it was, or below root at any end of its path.
func locate(ctx context.Context, s manifest.Source, root string) (string, error) {
	places := []string{s.Path}
	if root != "" {
		for rest := filepath.ToSlash(s.Path); rest != ""; _, rest, _ = strings.Cut(rest, "/") {
			if filepath.IsLocal(rest) {
				places = append(places, filepath.Join(root, rest))
			}
		}
	}
	reason := "is gone"
	for _, path := range places {
		data, err := manifest.Files{}.Get(ctx, path)
		if err != nil {
			continue
		}
		if digest(data) == s.SHA256 {
			return path, nil
		}
		reason = "has changed"
	}
	return "", fmt.Errorf("%s %s", s.Path, reason)
}

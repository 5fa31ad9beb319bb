package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"ddiff/manifest"
)

func newVerifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check that outputs are what their passports say",
		Long: "Checks restored images: the passport in the file, the identity that follows from it, the pixels,\n" +
			"the result.json beside it with the digests of all files, and the source image where it still lies.\n" +
			"FILE is a restored.png (a copy elsewhere is checked by its passport alone), a result.json, the folder\n" +
			"of an item, or a whole output. Each problem is one line with file, field and what to do.",
		Example: "  ddiff verify out\n" +
			"  ddiff verify photo.png",
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd.Context(), args, asJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per image, and one with the counts")
	return cmd
}

// verify checks the images that the arguments name, and prints what it finds.
func verify(ctx context.Context, args []string, asJSON bool, stdout io.Writer) error {
	if len(args) == 0 {
		return usageError{errors.New("give a restored.png, a result.json, the folder of an item, or an output")}
	}
	var files []string
	for _, arg := range args {
		found, err := restoredImages(arg)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	v, wrong := verifier{digests: map[string]string{}}, 0
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		o := v.verify(ctx, file)
		if !o.OK {
			wrong++
		}
		if err := o.print(stdout, asJSON); err != nil {
			return err
		}
	}
	if asJSON {
		if err := json.NewEncoder(stdout).Encode(map[string]int{"checked": len(files), "ok": len(files) - wrong, "wrong": wrong}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(stdout, "checked=%d ok=%d wrong=%d\n", len(files), len(files)-wrong, wrong)
	}
	if wrong > 0 {
		return fmt.Errorf("%w: %d of %d outputs are not what their passports say", errMismatch, wrong, len(files))
	}
	return nil
}

// restoredImages finds the images that an argument means.
func restoredImages(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Errorf("%s: there is no such file or folder", arg)}
	}
	if err != nil {
		return nil, usageError{err}
	}
	if !info.IsDir() {
		if filepath.Base(arg) == manifest.FileResult {
			return []string{filepath.Join(filepath.Dir(arg), manifest.FileRestored)}, nil
		}
		return []string{arg}, nil
	}
	for _, name := range []string{manifest.FileRestored, manifest.FileResult} {
		if _, err := os.Stat(filepath.Join(arg, name)); err == nil {
			return []string{filepath.Join(arg, manifest.FileRestored)}, nil
		}
	}
	entries, err := os.ReadDir(filepath.Join(arg, "items"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{err}
	}
	var files []string
	for _, e := range entries {
		if e.IsDir() {
			files = append(files, filepath.Join(arg, "items", e.Name(), manifest.FileRestored))
		}
	}
	if len(files) == 0 {
		return nil, usageError{fmt.Errorf("%s: the folder is neither that of an item nor an output with items", arg)}
	}
	return files, nil
}

// verifier checks many images.
type verifier struct {
	// digests are those of source files, by path: many items are made from one image. It is
	// empty for a file that is not there.
	digests map[string]string
}

// verify checks everything about one image.
func (v verifier) verify(ctx context.Context, file string) *output {
	o := readOutput(ctx, file)
	o.checkSidecar(ctx)
	if o.passport != nil {
		v.checkSources(ctx, o)
	}
	o.OK = len(o.Problems) == 0
	return o
}

// checkSources holds the files that the item was made from against their digests.
func (v verifier) checkSources(ctx context.Context, o *output) {
	all := sources(o.passport.Item)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		sum, known := v.digests[s.Path]
		if !known {
			if data, err := (manifest.Files{}).Get(ctx, s.Path); err == nil {
				sum = digest(data)
			}
			v.digests[s.Path] = sum
		}
		switch sum {
		case s.SHA256:
		case "":
			o.addNote("its %s is not checked: %s cannot be read", name, s.Path)
		default:
			o.addProblem(s.Path, "item."+name, "has the SHA-256 %.12s, %s was made from %.12s; put the original back, or run its campaign again for the new file", sum, o.File, s.SHA256)
		}
	}
}

// print writes what was found, one line each.
func (o *output) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(o)
	}
	for _, p := range o.Problems {
		fmt.Fprintln(w, p)
	}
	for _, n := range o.Notes {
		fmt.Fprintf(w, "%s: note: %s\n", o.File, n)
	}
	if o.OK {
		fmt.Fprintf(w, "%s: ok\n", o.File)
	}
	return nil
}

// Package results has the commands that read stored results: verify, replay, pull, score, report, compare, view and export.
//
// They only read outputs, except ddiff score, which stores its scores beside the results. A command is one file and one name in [Commands].
package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore/item"
)

func newVerifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify OUTPUT...",
		Short: "Check outputs against their passports",
		Long: "Check restored images: the passport in the file, the identity that follows from it, the pixels, the\n" +
			"result.json beside it with the digests of all files, and the source image where it still exists; and the\n" +
			"report of an output: results.csv, summaries, page, figures and sheets against SHA256SUMS, the rows of results.csv\n" +
			"against the items, and the scores of ddiff score.\n" +
			"OUTPUT is a restored.png (a copy elsewhere is checked by its passport alone), a result.json, the folder of\n" +
			"an item, or a whole output, on this machine or in a bucket. Each problem is one line with file, field,\n" +
			"cause and remedy. An item that another run finishes, such as one without a result.json, is\n" +
			"unfinished, which is no problem; what a newer version wrote is counted as newer, and is not checked.",
		Example: "  ddiff verify out\n" +
			"  ddiff verify photo.png\n" +
			"  ddiff verify \"s3://results/demo?endpoint=https://host\"",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return verify(cmd.Context(), args, asJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per image, and one with the counts")
	return cmd
}

// counts are the numbers of outputs that verify checked.
type counts struct {
	Checked    int `json:"checked"`
	OK         int `json:"ok"`
	Wrong      int `json:"wrong"`
	Unfinished int `json:"unfinished"`
	Newer      int `json:"newer"`
	// Report is ok, wrong, or none without a report. Scores that were changed make it wrong.
	Report string `json:"report"`
}

// add counts an image.
func (c *counts) add(o *output) {
	c.Checked++
	switch {
	case o.Unfinished:
		c.Unfinished++
	case len(o.Problems) > 0:
		c.Wrong++
	case o.Newer:
		c.Newer++
	default:
		c.OK++
	}
}

// addReport counts a report.
func (c *counts) addReport(o *output) {
	switch {
	case !o.OK:
		c.Report = "wrong"
	case c.Report == "none":
		c.Report = "ok"
	}
}

// verify checks the images and reports that the arguments name, and prints the outcome.
func verify(ctx context.Context, args []string, asJSON bool, stdout io.Writer) error {
	v, n := verifier{digests: map[string]string{}}, counts{Report: "none"}
	for _, arg := range args {
		finished := false // an item has a result, which the page of ddiff report has not
		for t, err := range restoredImages(ctx, arg) {
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			o := v.verify(ctx, t)
			n.add(o)
			finished = finished || !o.Unfinished
			if err := o.print(stdout, asJSON); err != nil {
				return err
			}
		}
		r, err := verifyReport(ctx, arg, finished)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		if n.addReport(r); !r.OK {
			if err := r.print(stdout, asJSON); err != nil {
				return err
			}
		}
	}
	if asJSON {
		if err := json.NewEncoder(stdout).Encode(n); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(stdout, "checked=%d ok=%d wrong=%d unfinished=%d newer=%d report=%s\n", n.Checked, n.OK, n.Wrong, n.Unfinished, n.Newer, n.Report)
	}
	switch {
	case n.Wrong > 0:
		return fmt.Errorf("%w: %d of %d outputs do not match their passports", cli.ErrMismatch, n.Wrong, n.Checked)
	case n.Report == "wrong":
		return fmt.Errorf("%w: the report or the scores do not match their digests or the items", cli.ErrMismatch)
	case n.Newer > 0:
		return fmt.Errorf("%d of %d outputs: %w; verify them with that version", n.Newer, n.Checked, item.ErrNewer)
	}
	return nil
}

// maxDigests bounds the memory of a verifier.
const maxDigests = 1 << 16

// verifier checks many images.
type verifier struct {
	// digests caches the digests of source files by path, because many items share an image. A missing file has "".
	digests map[string]string
}

// verify checks one image, the files beside it and its source.
func (v verifier) verify(ctx context.Context, t target) *output {
	o := &output{File: t.path, from: t.origin}
	if why := o.unfinished(ctx); why != "" {
		o.Unfinished = true
		o.addNote("is unfinished: %s; run its campaign again", why)
		return o
	}
	o.read(ctx)
	o.checkSidecar(ctx)
	if o.passport != nil {
		v.checkSources(o)
	}
	o.OK = len(o.Problems) == 0 && !o.Newer
	return o
}

// checkSources compares the source files of the item with their digests.
func (v verifier) checkSources(o *output) {
	all := o.passport.Item.Sources()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		sum, known := v.digests[s.Path]
		if !known {
			sum, _ = regular.Digest(s.Path, manifest.MaxFileBytes) // "" with an error
			if len(v.digests) == maxDigests {
				clear(v.digests)
			}
			v.digests[s.Path] = sum
		}
		switch sum {
		case s.SHA256:
		case "":
			o.addNote("its %s is not checked: %s cannot be read", name, s.Public())
		default:
			o.addProblem(s.Public(), "item."+name, "has the SHA-256 %.12s, %s was made from %.12s; put the original back, or run its campaign again for the new file", sum, o.File, s.SHA256)
		}
	}
}

// print writes the problems and notes of an image, or that it is sound.
func (o *output) print(w io.Writer, asJSON bool) error {
	shown := *o
	shown.File, shown.Problems = o.from.show(o.File), slices.Clone(o.Problems)
	for i := range shown.Problems {
		shown.Problems[i].File = o.from.show(o.Problems[i].File)
	}
	if asJSON {
		return json.NewEncoder(w).Encode(shown)
	}
	s := cli.StyleOf(w)
	for _, p := range shown.Problems {
		fmt.Fprintln(w, s.Red(cli.Printable(p.String())))
	}
	for _, n := range shown.Notes {
		fmt.Fprintln(w, cli.Printable(fmt.Sprintf("%s: note: %s", shown.File, n)))
	}
	if o.OK {
		fmt.Fprintf(w, "%s: %s\n", cli.Printable(shown.File), s.Green("ok"))
	}
	return nil
}

// Commands returns the commands of the package for the methods and operators of a catalogue, in the order of the help.
func Commands(c manifest.Catalogue) []*cobra.Command {
	return []*cobra.Command{newVerifyCommand(), newReplayCommand(c), newPullCommand(), newScoreCommand(), newReportCommand(c), newCompareCommand(c), newViewCommand(), newExportCommand()}
}

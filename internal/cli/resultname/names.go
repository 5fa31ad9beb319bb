// Package resultname gives restored images readable file names, and links them under these names in the folder restored of an
// output.
//
// A name has the row's name, the task and the properties in which the results differ, as in the tables of a report. Two
// results never share a name, also on a file system that ignores case.
package resultname

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/internal/report"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// namesFolder is the folder of an output directory that has the restored images under readable names.
const namesFolder = "restored"

// nameBytes is the longest part of a file name that the name of a row, or its properties, make.
const nameBytes = 100

// Row names the image of an item.
type Row struct {
	ID   string
	Name string // of the image; empty: that in the result
}

// Link gives the images of the last report of an output directory readable names. An object store has no links
// and gets no names; ddiff pull makes them.
func Link(ctx context.Context, output string, stderr io.Writer) {
	dir := output
	if u, err := url.Parse(output); err == nil && u.Scheme == "file" {
		dir = filepath.FromSlash(u.Path)
	} else if manifest.IsAddress(output) {
		return
	}
	// An interrupted run gets names, too.
	Write(context.WithoutCancel(ctx), dir, reported(dir), stderr)
}

// reported reads the finished items of results.csv in the directory of an output.
func reported(dir string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := readReported(dir, func(r Row) bool { return yield(r, nil) }); err != nil {
			yield(Row{}, err)
		}
	}
}

func readReported(dir string, yield func(Row) bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() // nothing was written
	f, _, err := regular.OpenIn(root, report.KeyCSV, regular.NoLimit)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written
	for row, err := range table.DoneRows(f) {
		if err != nil {
			return err
		}
		if !yield(Row{row["item"], row["image"]}) {
			return nil
		}
	}
	return nil
}

// restoredItem is an item with a restored image.
type restoredItem struct {
	Row
	cell sweep.Cell
	seed uint64
	run  int
}

// names writes the links of one output.
type names struct {
	root    *os.Root              // the output
	folder  *os.Root              // namesFolder
	tails   map[sweep.Cell]string // what follows the name of an image
	seeds   map[uint64]bool       // names have the seed if there are several
	runs    bool                  // names end in the run
	claimed map[string]bool       // by the folded name
}

// Write makes the folder of readable names agree with the rows: a relative link for each item that has a result and a
// restored image. It removes links to other items, and leaves files that it did not write. A second call changes nothing. Rows are
// read twice. A failure, as on a file system without links, costs the names alone, so that it is a warning.
func Write(ctx context.Context, dir string, rows iter.Seq2[Row, error], stderr io.Writer) {
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer root.Close() // links are not synced
		err = write(ctx, root, rows)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stderr, "ddiff: cannot name the images under %s: %v\n", filepath.Join(dir, namesFolder), err)
	}
}

func write(ctx context.Context, root *os.Root, rows iter.Seq2[Row, error]) error {
	n := names{root: root, tails: map[sweep.Cell]string{}, seeds: map[uint64]bool{}, claimed: map[string]bool{}}
	err := n.each(ctx, rows, func(it restoredItem) error {
		n.tails[it.cell], n.seeds[it.seed], n.runs = "", true, n.runs || it.run > 0
		return nil
	})
	if err != nil {
		return err
	}
	cells := slices.Collect(maps.Keys(n.tails))
	open := regular.OpenFolder
	if len(cells) > 0 {
		open = regular.OpenMadeFolder
	}
	if n.folder, err = open(root, namesFolder); err != nil {
		return err // Write ignores that there is neither an item nor a folder
	}
	defer n.folder.Close() // links are not synced
	for i, tail := range Tails(cells) {
		n.tails[cells[i]] = tail
	}
	if err := n.each(ctx, rows, n.add); err != nil {
		return err
	}
	return n.removeStale()
}

// each calls use with the restored items of the rows.
func (n *names) each(ctx context.Context, rows iter.Seq2[Row, error], use func(it restoredItem) error) error {
	for row, err := range rows {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		it, ok := n.read(row)
		if !ok {
			continue
		}
		if err := use(it); err != nil {
			return fmt.Errorf("name item %s: %w", it.Name, err)
		}
	}
	return nil
}

// read reads the result of an item; false if it has none, or no restored image.
func (n *names) read(row Row) (it restoredItem, ok bool) {
	if row.ID == "" || !filepath.IsLocal(row.ID) {
		return it, false // a row that failed before it had an identity
	}
	folder, err := regular.OpenFolder(n.root, path.Dir(item.Key(row.ID, item.FileResult)))
	if err != nil {
		return it, false
	}
	defer folder.Close() // nothing was written
	if _, err := folder.Lstat(item.FileRestored); err != nil {
		return it, false
	}
	data, err := regular.ReadIn(folder, item.FileResult, manifest.MaxFileBytes)
	var r item.Result
	if err != nil || json.Unmarshal(data, &r) != nil {
		return it, false
	}
	cell, err := sweep.CellOf(&r.Item)
	row.Name = cmp.Or(row.Name, r.Item.Name)
	return restoredItem{row, cell, r.Item.Seed, r.Item.Run}, err == nil
}

// add links one item.
func (n *names) add(it restoredItem) error {
	base := Safe(it.Name) + "." + n.tails[it.cell]
	if len(n.seeds) > 1 {
		base += fmt.Sprintf(".seed=%d", it.seed)
	}
	if n.runs {
		base += fmt.Sprintf(".run%d", it.run)
	}
	for _, suffix := range []string{"", "." + it.ID[:min(12, len(it.ID))]} {
		name := base + suffix + ".png"
		if n.claimed[cli.Fold(name)] || !n.mayWrite(name) {
			continue
		}
		n.claimed[cli.Fold(name)] = true
		return n.link(name, it.ID)
	}
	return nil // the item is linked already, or a file of the user has its name
}

// link makes name a link to the restored image of an item.
func (n *names) link(name, id string) error {
	target := filepath.Join("..", filepath.FromSlash(item.Key(id, item.FileRestored)))
	if now, err := n.folder.Readlink(name); err == nil && now == target {
		return nil
	}
	temp := "." + rand.Text() + ".tmp"
	if err := n.folder.Symlink(target, temp); err != nil {
		return err
	}
	return n.folder.Rename(temp, name)
}

// mayWrite reports whether a name is free, or has a link to an item.
func (n *names) mayWrite(name string) bool {
	_, err := n.folder.Lstat(name)
	return errors.Is(err, fs.ErrNotExist) || n.isOwnLink(name)
}

// isOwnLink reports whether a file is a link to an item.
func (n *names) isOwnLink(name string) bool {
	target, err := n.folder.Readlink(name)
	return err == nil && strings.HasPrefix(filepath.ToSlash(target), "../items/")
}

// removeStale removes the links that no item claimed.
func (n *names) removeStale() error {
	entries, err := fs.ReadDir(n.folder.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if n.claimed[cli.Fold(e.Name())] || !n.isOwnLink(e.Name()) {
			continue
		}
		if err := n.folder.Remove(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// Tails returns what follows the name of an image in readable names: the task of each cell, the properties in which the cells differ,
// and the method if it differs. Those that are long, or differ in upper and lower case only, end in a digest, so that different cells have
// different tails on every file system, in any order of the cells.
func Tails(cells []sweep.Cell) []string {
	several := slices.ContainsFunc(cells, func(c sweep.Cell) bool { return c.Method != cells[0].Method })
	cells = slices.Clone(cells)
	for i, c := range cells { // a noise level that is sigma, as it is by default, does not vary beside it
		cells[i].Settings = strings.Replace(c.Settings+";", "noise_std="+c.Sigma.String()+";", "noise_std=sigma;", 1)
	}
	readable := strings.NewReplacer("σ ", "sigma=", "prior ", "prior=", ", ", ".", " ", ".")
	out := make([]string, len(cells))
	for i, text := range aggregate.Variants(cells) {
		out[i] = cells[i].Task
		if text != "" {
			out[i] += "." + readable.Replace(text)
		}
		if several {
			out[i] += "." + cells[i].Method
		}
	}
	whole, shared := map[string]string{}, map[string]bool{} // by the folded name
	for _, text := range out {
		name := cli.Fold(Safe(text))
		shared[name] = shared[name] || cmp.Or(whole[name], text) != text
		whole[name] = text
	}
	for i, text := range out {
		if out[i] = Safe(text); shared[cli.Fold(out[i])] {
			const digits = 8
			cut := text[:min(len(text), nameBytes-1-digits)]
			out[i] = Safe(strings.ToValidUTF8(cut, "")) + "~" + regular.SHA256([]byte(text))[:digits]
		}
	}
	return out
}

// Safe makes a part of a file name of any text, without the characters that a file system refuses.
func Safe(text string) string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\<>:"|?*`, r) || r == utf8.RuneError || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, norm.NFC.String(text))
	for len(text) > nameBytes {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	text = strings.TrimRight(text, " .")
	if text == "" || text[0] == '.' {
		text = "_" + text
	}
	return text
}

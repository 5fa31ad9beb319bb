package resultname

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ddiff/coordinator/report"
	"ddiff/coordinator/report/sweep"
	"ddiff/gpuworker/passport"
	"ddiff/internal/regular"
	"ddiff/manifest"
)

// namesFolder is the folder of an output directory that has the restored images under readable names.
const namesFolder = "restored"

// nameBytes is the longest part of a file name that the name of a row makes.
const nameBytes = 120

// Link gives the images of the last report of an output directory readable names. An object store has no links
// and gets no names; ddiff pull makes them. A failure costs the names alone, so that it is a warning.
func Link(ctx context.Context, output string, stderr io.Writer) {
	dir := output
	if u, err := url.Parse(output); err == nil && u.Scheme == "file" {
		dir = filepath.FromSlash(u.Path)
	} else if manifest.IsAddress(output) {
		return
	}
	// An interrupted run gets names, too.
	err := Write(context.WithoutCancel(ctx), dir, func() iter.Seq2[Item, error] { return reportedItems(dir) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stderr, "ddiff: cannot name the images under %s: %v\n", filepath.Join(dir, namesFolder), err)
	}
}

// Item holds the parts of the readable name of a restored item.
type Item struct {
	ID, Name, Seed string
	Cell           sweep.Cell
	Run            int
}

// reportedItems reads the finished items of results.csv in the directory of an output.
func reportedItems(dir string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if err := readReported(dir, func(it Item) bool { return yield(it, nil) }); err != nil {
			yield(Item{}, err)
		}
	}
}

func readReported(dir string, yield func(Item) bool) error {
	f, _, err := regular.Open(filepath.Join(dir, report.KeyCSV), regular.NoLimit)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written
	rows := csv.NewReader(f)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return fmt.Errorf("read %s: %w", report.KeyCSV, err)
	}
	column := map[string]int{}
	for i, name := range header {
		column[name] = i
	}
	for _, name := range []string{"item", "image", "task", "params", "sigma", "size", "prior", "method", "settings", "run", "seed", "outcome", "fit"} {
		if _, ok := column[name]; !ok {
			return fmt.Errorf("read %s: column %s is missing", report.KeyCSV, name)
		}
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", report.KeyCSV, err)
		}
		if row[column["outcome"]] != string(manifest.OutcomeDone) {
			continue
		}
		it, err := namedRow(func(name string) string {
			if i, ok := column[name]; ok {
				return row[i]
			}
			return "" // of an earlier version
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", report.KeyCSV, err)
		}
		if !yield(it) {
			return nil
		}
	}
}

// namedRow reads a row of results.csv.
func namedRow(column func(name string) string) (Item, error) {
	run, err := strconv.Atoi(column("run"))
	if err != nil {
		return Item{}, fmt.Errorf("run: %w", err)
	}
	sigma, err := manifest.ParseSigma(column("sigma"))
	if err != nil {
		return Item{}, fmt.Errorf("sigma: %w", err)
	}
	if column("sigma_estimated") != "" {
		sigma = manifest.SigmaAuto
	}
	photons := 0.0
	if text := column("photons"); text != "" {
		if photons, err = strconv.ParseFloat(text, 64); err != nil {
			return Item{}, fmt.Errorf("photons: %w", err)
		}
	}
	size := strings.TrimSpace(column("size") + " " + column("fit"))
	if fit := column("fit"); fit == string(manifest.FitPad) {
		size = fit
	}
	it := Item{ID: column("item"), Name: column("image"), Seed: column("seed"), Run: run}
	it.Cell.Problem = sweep.Problem{Task: column("task"), Params: column("params"), Sigma: sigma, Photons: photons, Size: size}
	it.Cell.Approach = sweep.Approach{Method: column("method"), Prior: column("prior"), Settings: column("settings")}
	return it, nil
}

// names writes the links of one output. Of each item it holds a hash of its name.
type names struct {
	dir     string // the output
	varying Variation
	runs    bool // names end in the run
	claimed map[uint64]struct{}
}

// Write makes the folder of readable names agree with the items: a relative link for each item that has a
// restored image, or a copy where the file system has no links. It removes links and copies of other items, and leaves
// files that it did not write. A second call changes nothing. Items is called twice.
func Write(ctx context.Context, dir string, items func() iter.Seq2[Item, error]) error {
	n := names{dir: dir, claimed: map[uint64]struct{}{}}
	for it, err := range items() {
		if err != nil {
			return err
		}
		n.varying.Add(it.Cell, it.Seed)
		n.runs = n.runs || it.Run > 0
	}
	for it, err := range items() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := n.add(it); err != nil {
			return fmt.Errorf("name item %s: %w", it.Name, err)
		}
	}
	return n.removeStale()
}

// add links one item.
func (n *names) add(it Item) error {
	source := filepath.Join(n.dir, filepath.FromSlash(manifest.ItemKey(it.ID, manifest.FileRestored)))
	if it.ID == "" || !filepath.IsLocal(it.ID) {
		return nil // a row that failed before it had an identity
	}
	if _, err := os.Lstat(source); err != nil {
		return nil //nolint:nilerr // it has no restored image
	}
	if err := os.MkdirAll(filepath.Join(n.dir, namesFolder), 0o755); err != nil {
		return err
	}
	base := Safe(it.Name) + "." + n.varying.Tail(it.Cell, it.Seed, false)
	if n.runs {
		base += fmt.Sprintf(".run%d", it.Run)
	}
	for _, suffix := range []string{"", "." + it.ID[:min(8, len(it.ID))], "." + it.ID[:min(24, len(it.ID))]} {
		name := base + suffix + ".png"
		if _, taken := n.claimed[hashName(name)]; taken || !n.mayWrite(name) {
			continue
		}
		n.claimed[hashName(name)] = struct{}{}
		return n.link(name, it.ID, source)
	}
	return nil // the item is linked already, or a file of the user has its name
}

// link makes name a link to the restored image of an item.
func (n *names) link(name, id, source string) error {
	path := filepath.Join(n.dir, namesFolder, name)
	target := filepath.Join("..", filepath.FromSlash(manifest.ItemKey(id, manifest.FileRestored)))
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	}
	temp := filepath.Join(n.dir, namesFolder, "."+id+".tmp")
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, temp); err != nil {
		data, readErr := regular.Read(source, manifest.MaxFileBytes)
		if readErr != nil {
			return readErr
		}
		if now, err := regular.Read(path, manifest.MaxFileBytes); err == nil && string(now) == string(data) {
			return nil
		}
		if err := os.WriteFile(temp, data, 0o644); err != nil {
			return errors.Join(err, os.Remove(temp))
		}
	}
	return os.Rename(temp, path)
}

// mayWrite reports whether a name is free, or has a link or a copy of an item.
func (n *names) mayWrite(name string) bool {
	path := filepath.Join(n.dir, namesFolder, name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && isOwnFile(path, info.Mode())
}

// isOwnFile reports whether a file was written by link: a link to an item, or an image with a passport.
func isOwnFile(path string, mode fs.FileMode) bool {
	if mode&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		return err == nil && strings.HasPrefix(filepath.ToSlash(target), "../items/")
	}
	if !mode.IsRegular() || filepath.Ext(path) != ".png" {
		return false
	}
	data, err := regular.Read(path, manifest.MaxFileBytes)
	if err != nil {
		return false
	}
	_, err = passport.Read(data)
	return err == nil
}

// removeStale removes the links and copies that no item claimed.
func (n *names) removeStale() error {
	folder, err := os.Open(filepath.Join(n.dir, namesFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close() // nothing was written
	for {
		entries, err := folder.ReadDir(1024)
		for _, e := range entries {
			path := filepath.Join(folder.Name(), e.Name())
			if _, used := n.claimed[hashName(e.Name())]; used || !isOwnFile(path, e.Type()) {
				continue
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Safe makes a part of a file name of any text, for all file systems.
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
	if text == "" || text[0] == '.' || reserved(text) {
		text = "_" + text
	}
	return text
}

// reserved reports whether Windows takes the text for a device: up to its first dot, in any case.
func reserved(text string) bool {
	device, _, _ := strings.Cut(strings.ToUpper(text), ".")
	device = strings.TrimRight(device, " ")
	switch device {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, numbered := strings.CutPrefix(device, "COM")
	if !numbered {
		port, numbered = strings.CutPrefix(device, "LPT")
	}
	digit, _ := utf8.DecodeRuneInString(port)
	return numbered && utf8.RuneCountInString(port) == 1 && strings.ContainsRune("0123456789¹²³", digit)
}

// Fold is the same for names that a file system without a difference between upper and lower case confuses.
func Fold(name string) string { return strings.ToLower(strings.ToUpper(norm.NFC.String(name))) }

// hashName identifies a name on file systems with and without a difference between upper and lower case.
func hashName(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(Fold(name))) // a hash does not fail
	return h.Sum64()
}

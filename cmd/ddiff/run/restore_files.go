package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ddiff/internal/cli"
	"ddiff/internal/cli/resultname"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
	restorer "ddiff/restore/picture"
)

// chosenRun tells the second file of the best of several runs.
const chosenRun = "chosen"

// longestName is the length of a file's name in bytes that file systems of Linux permit.
const longestName = 255

// restoredSuffix ends the name of a restored picture, before its extension.
const restoredSuffix = ".restored"

// picture is an input of restore.
type picture struct {
	name string // as in the argument
	path string // absolute
	base string // begin of the name of its restored picture, without folder
	sub  string // folder of the picture below that of the argument, with --recursive
	ext  string // extension of its restored picture
	file string // path of its restored picture; empty: by the other fields

	// Of a preview: the path of the whole picture, its shorter side in parts of that of the preview, and its estimated noise. Zero: not of a preview.
	whole string
	scale float64
	sigma *float64

	params map[string]float64 // that were estimated
	kernel string             // file of a kernel that was estimated; empty: that of all pictures

	info     fs.FileInfo        // of the file; nil if it is gone
	restored *passport.Passport // of the existing file with the name of its restored picture; nil without one
}

// findPictures returns the measurements that the arguments name: files, and those of folders, in the order of their names. Restored
// pictures of a folder, and those in it that ddiff wrote into an output, are no inputs. skips has the other files and folders of folders; an argument that is
// no measurement, and a folder that cannot be read, has its error in refused.
func findPictures(args []string, recursive bool) (inputs []*picture, refused map[string]error, skips manifest.Skips, err error) {
	refused = map[string]error{}
	seen := map[string]bool{}
	skip := func(path, reason string) { skips.Add(manifest.Skip{Path: path, Reason: reason}) }
	below := "" // the first folder that is not read
	add := func(name, sub string) error {
		path, err := filepath.Abs(name)
		if err != nil || seen[path] {
			return err
		}
		seen[path] = true
		base := filepath.Base(name)
		info, _ := os.Stat(path) // a file that is gone fails when it is read
		inputs = append(inputs, &picture{name: name, path: path, base: strings.TrimSuffix(base, filepath.Ext(base)), sub: sub, ext: naturalExtension(path), info: info})
		return nil
	}
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			refused[arg] = fmt.Errorf("%w; give pictures, .npy files or folders of them", errors.Unwrap(err))
		case info.IsDir():
			root := arg + string(filepath.Separator) // also of a link
			err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
				_, again := restoredName(e.Name())
				switch {
				case err != nil:
					refused[path] = errors.Unwrap(err)
				case path == root:
				case manifest.IsWritten(path):
					skip(path, manifest.SkipWritten)
					return skipDir(e)
				case strings.HasPrefix(e.Name(), "."):
					if manifest.HidesImages(e.Name(), e.IsDir(), isMeasurement(path)) {
						skip(path, manifest.SkipHidden)
					}
					return skipDir(e)
				case again && !e.IsDir():
					skip(path, skipRestored)
				case e.IsDir() && !recursive:
					below = cmp.Or(below, path)
					skip(path, skipFolder)
					return fs.SkipDir
				case e.IsDir():
				case !isMeasurement(path):
					skip(path, skipKind)
				default:
					sub, err := filepath.Rel(root, filepath.Dir(path))
					return errors.Join(err, add(path, sub))
				}
				return nil
			})
			if err != nil {
				return nil, nil, nil, err
			}
		case len(args) > 1 && manifest.IsWritten(arg): // a shell's pattern names it
			skip(arg, manifest.SkipWritten)
		case isMeasurement(arg):
			if err := add(arg, ""); err != nil {
				return nil, nil, nil, err
			}
		default:
			refused[arg] = errNoMeasurement
		}
	}
	if len(inputs) == 0 && len(refused) > 0 {
		name := slices.Min(slices.Collect(maps.Keys(refused)))
		return nil, nil, nil, fmt.Errorf("%s: %w", name, refused[name])
	}
	if len(inputs) == 0 {
		remedy := ""
		if below != "" {
			remedy = ", or --recursive for " + below
		}
		return nil, nil, nil, errors.New("no picture found; give PNG, JPEG, TIFF, WebP, BMP, GIF or .npy files, or folders of them" + remedy)
	}
	return inputs, refused, skips, nil
}

// The reasons of restore for a skipped entry beside those of manifest.
const (
	skipKind     = "neither a picture nor a .npy file"
	skipFolder   = "a folder; --recursive restores its pictures too"
	skipRestored = "named as a restored picture; give it by its name to restore it"
)

// skipDir passes over a directory whose entry WalkDir visits, and over nothing else after a file.
func skipDir(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// distinguish gives restored pictures in a folder, or beside their inputs, different names, also where a file system ignores case: pictures of
// one name and different extensions keep their extension, and a name that is still taken gets a number. A name of these under which an earlier command restored
// the picture stays, whatever its neighbours are now.
func distinguish(inputs []*picture, folder string) {
	place := func(in *picture) string { return cli.Fold(in.target(folder, "")) }
	targets, wholes := map[string]int{}, map[string]int{}
	for _, in := range inputs {
		targets[place(in)]++
		wholes[place(in.named(filepath.Base(in.path)))]++
	}
	taken, named := map[string]bool{}, map[*picture]bool{}
	for _, in := range inputs {
		plain, whole := in.base, filepath.Base(in.path)
		if in.base = whole; targets[place(in.named(plain))] == 1 {
			in.base = plain
		}
		if earlier, ok := in.earlier(folder, plain, whole, wholes[place(in.named(whole))] > 1); ok {
			in.base = earlier
			named[in], taken[place(in)] = true, true
		}
	}
	for _, in := range inputs {
		base := in.base
		for n := 2; !named[in] && taken[place(in)]; n++ {
			in.base = fmt.Sprintf("%s-%d", base, n)
		}
		taken[place(in)] = true
	}
}

// named returns the picture with another name of its restored picture.
func (p *picture) named(base string) *picture {
	other := *p
	other.base = base
	return &other
}

// earlier returns the name under which an earlier command restored a picture: without its extension, with it, or with a number. It looks where the present name has
// no file, or is contested.
func (p *picture) earlier(folder, plain, whole string, contested bool) (base string, ok bool) {
	exists := func(base string) bool {
		_, err := os.Lstat(p.named(base).target(folder, ""))
		return err == nil
	}
	if exists(p.base) && !contested {
		return "", false
	}
	names := []string{plain, whole}
	for n := 2; exists(fmt.Sprintf("%s-%d", whole, n)); n++ {
		names = append(names, fmt.Sprintf("%s-%d", whole, n))
	}
	for _, base := range names {
		old, err := passportOf(p.named(base).target(folder, ""))
		if err != nil || old == nil {
			continue
		}
		if data, err := regular.Read(p.path, manifest.MaxFileBytes); err == nil && regular.SHA256(data) == old.Item.Measurement.SHA256 {
			return base, true
		}
	}
	return "", false
}

// errNoMeasurement is the error of an argument in a format that is not read.
var errNoMeasurement = errors.New("neither a picture nor a .npy file; give PNG, JPEG, TIFF, WebP, BMP, GIF or .npy files")

// source returns the path of the picture, also of a preview.
func (p *picture) source() string { return cmp.Or(p.whole, p.path) }

// target returns the path of a restored picture in a folder, or beside the input. tail tells it from others of the input.
func (p *picture) target(folder, tail string) string {
	if tail != "" {
		tail = "." + tail
	}
	if p.file != "" {
		ext := filepath.Ext(p.file)
		return strings.TrimSuffix(p.file, ext) + tail + ext
	}
	if folder == "" {
		return filepath.Join(filepath.Dir(p.source()), p.base+tail+restoredSuffix+p.ext)
	}
	return filepath.Join(folder, p.sub, p.base+tail+restoredSuffix+p.ext)
}

// pictureWriter writes the restored pictures of a campaign and reports on them.
type pictureWriter struct {
	restoreOptions
	spec           *manifest.Spec
	cells          []item.Task     // restorations of each input
	session        restorer.Config // its Item needs no runtime
	tile, overlap  int
	show           *cli.Progress
	stdout, stderr io.Writer
	inputs         map[string]*picture // by name

	mu      sync.Mutex
	waiting map[string][]restored // by input with several restorations, which have names when all of them are known
	written int
	warned  int // also of those that are restored already
	skipped int // inputs that are restored already
	counts  record.Counts
	total   *totals
	full    error // no space is left for a restored picture, so that no further one is restored
}

// choose returns the inputs to restore: those without a restored picture, or all with --force. An existing file that is not the
// restoration of its input with the settings is an error of the input.
func (w *pictureWriter) choose(inputs []*picture) (todo []*picture, err error) {
	for _, in := range inputs {
		w.inputs[in.name] = in
	}
	var existing []*picture // with a file of the name
	writable := map[string]error{}
	for _, in := range inputs {
		target := in.target(w.into, "")
		if err := w.checkNoInput(in, target); err != nil && w.single() { // the names of several restorations are not known yet
			return nil, cli.Usage(fmt.Errorf("restore: %w", err))
		}
		folder := filepath.Dir(target)
		if _, known := writable[folder]; !known && w.into == "" {
			writable[folder] = checkWritable(folder)
		}
		if _, err := os.Lstat(target); err == nil && !w.force && w.single() && w.preview == 0 {
			in.restored, _ = passportOf(target)
			existing = append(existing, in)
			continue
		}
		if err := writable[folder]; err != nil {
			w.fail(in.name, err)
			continue
		}
		if err := checkLength(target); err != nil {
			w.fail(in.name, err)
			continue
		}
		todo = append(todo, in)
	}
	todo = append(todo, w.skipEqual(existing)...)
	if w.into != "" && len(todo) > 0 {
		if err := checkWritable(w.into); err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
	}
	return todo, nil
}

// dropRestored leaves out the inputs that are restored pictures, means or deviations of other inputs, as in `restore *.png` after an interruption.
// With --force they stay, so that checkNoInput refuses them: an input is never replaced.
func (o *restoreOptions) dropRestored(inputs []*picture) (kept []*picture, dropped int) {
	if o.force {
		return inputs, 0
	}
	byStem := map[string]*picture{} // by the path of the restored picture without its tail and suffix
	for _, in := range inputs {
		stem, _ := restoredName(in.target(o.into, ""))
		byStem[stem] = in
	}
	kept = slices.DeleteFunc(inputs, func(of *picture) bool {
		stem, found := restoredName(of.source())
		spread := slices.Contains(spreadNames, strings.TrimPrefix(filepath.Ext(stem), "."))
		for ; found; stem = strings.TrimSuffix(stem, filepath.Ext(stem)) {
			if in := byStem[stem]; in != nil && in != of {
				if old, _ := passportOf(of.source()); spread || old != nil {
					dropped++
					return true
				}
			}
			found = filepath.Ext(stem) != ""
		}
		return false
	})
	return kept, dropped
}

// checkNoInput refuses a restored picture of in that would replace an input.
func (w *pictureWriter) checkNoInput(in *picture, target string) error {
	found, err := os.Stat(target)
	if err != nil {
		return nil //nolint:nilerr // nothing is replaced
	}
	for _, other := range w.total.inputs {
		if other.info != nil && os.SameFile(found, other.info) {
			return fmt.Errorf("%s is an input, and would be the restored picture of %s; give --out DIR, or leave one of them out", other.name, in.name)
		}
	}
	return nil
}

// checkLength refuses a restored picture whose name is too long.
func checkLength(target string) error {
	if n := len(filepath.Base(target)); n > longestName {
		return fmt.Errorf("the name of its restored picture would have %d bytes, at most %d are possible; rename the picture, or give --out FILE", n, longestName)
	}
	return nil
}

// passportOf returns the passport of a restored picture, nil for a file of another origin and with an error.
func passportOf(path string) (*passport.Passport, error) {
	data, err := regular.Read(path, manifest.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	p, err := passport.Read(data)
	if err != nil || p.Item.Measurement == nil {
		return nil, nil //nolint:nilerr,nilnil // a file of another origin
	}
	return &p, nil
}

// skipEqual skips the inputs whose existing files are their restorations with these settings, and returns those among them that --results lacks. Other files
// are errors of their inputs.
func (w *pictureWriter) skipEqual(existing []*picture) (lacking []*picture) {
	for _, in := range existing {
		p := w.pictures(in)[0]
		if r := in.restored; r != nil && !w.unchecked && w.results == "" && slices.ContainsFunc(r.Warnings, func(a item.Warning) bool { return a.Code == photograph.WarnChanged }) {
			p.Task.Sigma, p.Task.Params = new(item.Sigma(r.Item.Sigma)), r.Item.Params
		}
		if r := in.restored; r != nil && p.Task.Tile == 0 && r.Item.Tile == w.session.Large.Side && r.Item.Overlap == w.session.Large.Overlap {
			p.Task.Tile, p.Task.Overlap = r.Item.Tile, r.Item.Overlap
		}
		it, err := w.session.Item(p)
		if err != nil || in.restored == nil || it.ID != in.restored.Item.ID {
			w.fail(in.name, fmt.Errorf("%s exists and is not its restoration with these settings; give --force to replace it, or --out", in.target(w.into, "")))
			continue
		}
		if target := in.target(w.into, ""); !w.hasForm(in, target) {
			w.fail(in.name, fmt.Errorf("%s exists with another --quality or --strip; give --force to replace it, or --out", target))
			continue
		}
		if _, err := os.Stat(filepath.Join(w.results, item.Key(it.ID, item.FileResult))); err != nil && w.results != "" {
			lacking = append(lacking, in)
			continue
		}
		w.skipped++
		if len(in.restored.Warnings) > 0 {
			w.warned++
		}
	}
	return lacking
}

// single reports whether each input has one restoration.
func (w *pictureWriter) single() bool { return len(w.cells) == 1 }

// restored is a settled item; picture is that of one that is done.
type restored struct {
	item.Result
	picture []byte
	image   *raster.Image // before it was rounded; nil: not known
	doubted string        // why it was restored again; empty: it was not
}

// settled writes the picture of an item. It keeps the items of an input with several restorations until the last of them is settled. Its error says that
// no space is left.
func (w *pictureWriter) settled(res restored) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full != nil {
		return w.full
	}
	if w.leaves(res) {
		res.Outcome = outcomeLeft
	} else if i := doubtOf(res.Result); i >= 0 && res.Outcome == item.OutcomeDone && !w.unchecked {
		w.fail(res.Item.Name, fmt.Errorf("%w: %s; --unchecked writes the result as it is", restorer.ErrImplausible, res.Warnings[i].Text))
		res.Outcome = item.OutcomeFailed
	} else if res.Outcome != item.OutcomeDone && w.JSON {
		w.printJSON(restoration{Input: res.Item.Name, Outcome: res.Outcome, Reason: res.Reason, Task: res.Item.Task})
	}
	if w.single() {
		if res.Outcome == item.OutcomeDone {
			w.write(res, "")
		}
		return w.full
	}
	name := res.Item.Name
	w.waiting[name] = append(w.waiting[name], res)
	if len(w.waiting[name]) == len(w.cells) {
		if err := w.writeInput(name); err != nil {
			w.unwritten(name, err)
		}
	}
	return w.full
}

// doubtOf returns the index of the warning of a doubt that led to no other settings, -1 for none.
func doubtOf(res item.Result) int {
	return slices.IndexFunc(res.Warnings, func(a item.Warning) bool { return a.Code == photograph.WarnDoubt })
}

// outcomeLeft is the outcome of a picture that is left as it is.
const outcomeLeft item.Outcome = "skipped"

// leaves reports whether a picture is left as it is: nobody said that it needs a restoration, and one that is not to be believed at once would
// make it worse. It says so; w.mu is locked.
func (w *pictureWriter) leaves(res restored) bool {
	why := res.doubted
	if i := doubtOf(res.Result); i >= 0 {
		why = res.Warnings[i].Text
	}
	if why == "" || !w.chosen || w.unchecked || res.Outcome != item.OutcomeDone {
		return false
	}
	if w.show.Say(fmt.Sprintf("%s: left as it is: %s", res.Item.Name, why)); w.JSON {
		w.printJSON(restoration{Input: res.Item.Name, Outcome: outcomeLeft, Reason: why, Task: res.Item.Task})
	}
	if res.Item.Run == 0 {
		w.total.left++
		w.total.doubtful.Add(manifest.Skip{Path: res.Item.Name, Reason: "it is doubtful whether it needs a restoration; --task " + res.Item.Task + " writes one"})
	}
	return true
}

// writeInput writes the pictures of an input with several restorations; w.mu is locked. Their names have the properties in which these
// restorations differ, so that they do not depend on other inputs.
func (w *pictureWriter) writeInput(name string) error {
	results := w.waiting[name]
	delete(w.waiting, name)
	cells := make([]sweep.Cell, len(results))
	for i := range results {
		it := results[i].Item
		it.Params = w.inputs[name].unscaled(it.Params)
		c, err := sweep.CellOf(&it)
		if err != nil {
			return err
		}
		c.Size = "unknown" // for an item that failed early
		// Without the settings of a method, or chosen for the noise.
		c.Settings = strings.Join(slices.DeleteFunc(strings.Split(c.Settings, ";"), func(text string) bool {
			setting, _, _ := strings.Cut(text, "=")
			return !w.hasParam(setting)
		}), ";")
		cells[i] = c
	}
	names := resultname.Tails(cells)
	runs, tails := map[string][]restored{}, []string(nil)
	replaced := map[string]bool{} // by tail: a run is written in place of one of an earlier preview
	for i, res := range results {
		if res.Outcome != item.OutcomeDone {
			continue
		}
		tail := strings.TrimPrefix(strings.TrimPrefix(names[i], resultname.Safe(res.Item.Task)), ".")
		if w.spec.Runs > 1 {
			if runs[tail] = append(runs[tail], res); len(runs[tail]) == 2 {
				tails = append(tails, tail)
			}
			run := strings.TrimPrefix(fmt.Sprintf("%s.run%d", tail, res.Item.Run), ".")
			replaced[tail] = replaced[tail] || w.replacesPreview(w.inputs[name].target(w.into, run))
			tail = run
		}
		if w.write(res, tail); w.full != nil {
			return w.full
		}
	}
	for _, tail := range tails {
		if w.Catalogue.Operators.Known(results[0].Item.Task).Ambiguous {
			w.write(smallestResidual(runs[tail]), strings.TrimPrefix(tail+"."+chosenRun, "."))
			continue
		}
		if err := w.writeSpread(w.inputs[name], tail, runs[tail], replaced[tail]); err != nil {
			return err
		}
	}
	return nil
}

// write copies the restored picture of an item to its place; w.mu is locked.
func (w *pictureWriter) write(res restored, tail string) {
	in := w.inputs[res.Item.Name]
	target := in.target(w.into, tail)
	var file []byte
	err := errors.Join(checkLength(target), w.checkNoInput(in, target)) // the names of several restorations are known only now
	if err == nil {
		var lost []item.Warning
		if file, lost, err = w.encode(in, target, res.picture, res.image, res.Item.MeasurementRange); err == nil {
			res.Warnings = append(slices.Clip(res.Warnings), lost...)
			err = writeNew(target, file, w.force || w.replacesPreview(target))
		}
	}
	if errors.Is(err, fs.ErrExist) {
		if old, _ := passportOf(target); old != nil && old.Item.ID == res.Item.ID && w.hasForm(in, target) {
			err = nil
		}
	}
	if err != nil {
		w.unwritten(in.name, err)
		return
	}
	again := strings.HasSuffix(tail, chosenRun) // one of the others
	if !again {
		w.written++
		if len(res.Warnings) > 0 {
			w.warned++
		}
	}
	if w.JSON {
		out := restoration{in.name, target, res.Outcome, "", res.Warnings, res.Item.ID, res.Item.Task, res.Item.Method, res.Item.Choice, res.Metrics, nil}
		if res.Item.SigmaEstimated {
			out.Sigma = &res.Item.Sigma
		}
		w.printJSON(out)
		return
	}
	p, it := res.Item.Picture, res.Item
	if p.Transposed() {
		it.Width, it.Height = it.Height, it.Width
	}
	if p != nil && (p.Width != it.Width || p.Height != it.Height) {
		w.show.Say(fmt.Sprintf("%s: mirrored from %d×%d to %d×%d restored pixels, which suit the prior, and cropped again", in.name, p.Width, p.Height, it.Width, it.Height))
	}
	if it.Tile > w.tile {
		w.show.Say(fmt.Sprintf("%s: restored in tiles of %d pixels, because the whole picture needs more memory than is free or the prior takes no images of its size; --tile off refuses it", in.name, it.Tile))
	}
	if std := it.Params[blurWidth]; in.scale > 1 && std != 0 {
		w.show.Say(fmt.Sprintf("%s: std %.3g of the preview is std %.3g of the whole picture", in.name, std, in.unscaled(it.Params)[blurWidth]))
	}
	if it.SigmaEstimated {
		w.show.Say(fmt.Sprintf("%s: estimated sigma %g", in.name, it.Sigma))
	}
	if it.Choice != w.spec.Tasks[0].Choice { // which was said before
		w.show.Say(relative(target) + ": " + it.Choice)
	}
	if !again {
		w.show.Warn(relative(target), res.Warnings)
	}
	fmt.Fprintln(w.stdout, cli.Printable(relative(target)))
}

// relative returns a path below the working directory as people write it.
func relative(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// unwritten reports an input whose restored picture cannot be written.
func (w *pictureWriter) unwritten(name string, err error) {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		w.full = cmp.Or(w.full, fmt.Errorf("%s: %w; make space, and rerun the same command to resume", name, err))
		return
	}
	w.fail(name, err)
}

// fail reports an input without a restored picture.
func (w *pictureWriter) fail(name string, err error) {
	w.total.fail(name, w.spec.Tasks[0].Name, err)
}

// existsError is the path of an existing file that is not replaced.
type existsError string

func (e existsError) Error() string { return string(e) + " exists; give --force to replace it" }

// Is reports that the error is [fs.ErrExist].
func (existsError) Is(target error) bool { return target == fs.ErrExist }

// writeNew creates a file, and its folder, with all its bytes or not at all, so that it survives a loss of power. It replaces an existing file only with force; equal bytes are no
// error.
func writeNew(path string, data []byte, force bool) error {
	write := regular.New
	if force {
		write = regular.Replace
	}
	err := regular.MakeFolder(filepath.Dir(path))
	if err == nil {
		err = write(path, data, 0o644)
	}
	if errors.Is(err, fs.ErrExist) {
		if now, unread := regular.Read(path, manifest.MaxFileBytes); unread == nil && string(now) == string(data) {
			return nil
		}
		err = existsError(path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrRestoredFile, err)
	}
	return nil
}

// checkWritable returns an error for a folder in which no file can be created, or that cannot be created.
func checkWritable(dir string) error {
	for parent := filepath.Dir(dir); parent != dir; parent = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = parent
	}
	f, err := os.CreateTemp(dir, ".ddiff-*.tmp")
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrRestoredFile, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

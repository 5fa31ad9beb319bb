package campaign

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"ddiff/manifest"
)

// isCampaign reports whether an argument of run names a campaign file: by its extension, or a file without one. A directory
// is a dataset, whatever its name.
func isCampaign(arg string) bool {
	if manifest.IsAddress(arg) {
		return false
	}
	info, err := os.Stat(arg)
	switch strings.ToLower(filepath.Ext(arg)) {
	case ".yaml", ".yml", ".json":
		return err != nil || !info.IsDir()
	case "":
		return err == nil && info.Mode().IsRegular()
	}
	return false
}

// loadCampaign reads a campaign file. The images of --images replace its dataset.path.
func (o Options) loadCampaign(path string) (*manifest.Spec, error) {
	spec, err := manifest.Load(path)
	if err != nil {
		return nil, spec.Problems(err, o.Catalogue)
	}
	from, flag := o.replacement()
	if from == "" {
		return spec, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	spec.Dataset.Path, spec.Dataset.Measurements = manifest.ResolveDataset(dir, from), o.Measurement != ""
	spec.Override("dataset.path", flag)
	return spec, nil
}

// replacement returns the dataset that replaces the arguments, and its flag.
func (o Options) replacement() (path, flag string) {
	if o.Measurement != "" {
		return o.Measurement, "--measurement"
	}
	return o.images, "--images"
}

// imageCampaign makes a campaign for the images that the arguments or --images name. Skipped has the arguments that
// are no images, as a shell's photos/* may have.
func (o Options) imageCampaign(args []string) (spec *manifest.Spec, skipped manifest.Skips, err error) {
	from, flag := o.replacement()
	switch {
	case o.images != "" && o.Measurement != "":
		return nil, nil, errors.New("run: give --images or --measurement, not both; a list has columns for both")
	case len(args) > 0 && from != "":
		return nil, nil, fmt.Errorf("%s %s: there is also the argument %s; give arguments or %s, not both", flag, from, args[0], flag)
	case len(args) == 0 && from == "":
		return nil, nil, errors.New("run: nothing to run; give a campaign file, or images and --task")
	case from != "":
		args = []string{from}
	}
	var paths []string
	var missing error
	gone := 0 // paths without a file, which are rows that fail beside others
	for _, arg := range args {
		switch ok, err := isDataset(arg, len(args) == 1); {
		case isCampaign(arg) && from == "":
			return nil, nil, fmt.Errorf("run: %s is a campaign file; give one campaign file alone, or images", arg)
		case errors.Is(err, fs.ErrNotExist) && from == "":
			missing = cmp.Or(missing, fmt.Errorf("run: %s: %w", arg, err))
			paths = append(paths, arg)
			gone++
		case err != nil && from == "":
			return nil, nil, fmt.Errorf("run: %s: %w", arg, err)
		case !ok && len(args) > 1:
			skipped.Add(manifest.Skip{Path: arg, Reason: manifest.SkipKind})
		default:
			paths = append(paths, arg)
		}
	}
	if missing != nil && gone == len(paths) {
		return nil, nil, missing
	}
	if len(paths) == 0 {
		return nil, nil, fmt.Errorf("run: none of the %d arguments is an image; give PNG, JPEG, TIFF or WebP files", len(args))
	}
	if len(o.Tasks)+len(o.OperatorFiles) == 0 {
		return nil, nil, errors.New("--task is missing; give --task NAME or --task all, see: ddiff tasks")
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("run: %w", err)
	}
	spec = manifest.Default()
	spec.Dataset.Measurements = o.Measurement != ""
	spec.Dataset.Path = manifest.ResolveDataset(dir, paths[0])
	spec.Name = manifest.NameOf(spec.Dataset.Path)
	if len(paths) > 1 {
		spec.Name = fmt.Sprintf("%.60s and %d more", spec.Name, len(paths)-1)
	}
	if _, err := os.Stat(paths[0]); err == nil || len(paths) > 1 {
		spec.Dataset.Path = datasetOf(dir, paths)
	}
	return spec, skipped, nil
}

// isDataset reports whether a dataset may have the path: an image, a directory, a list, an archive, a glob or an
// address. The error is that of a path without a file.
func isDataset(path string, alone bool) (bool, error) {
	local := strings.TrimPrefix(path, manifest.LocalPrefix)
	if manifest.IsAddress(local) {
		return true, nil
	}
	info, err := os.Stat(local)
	switch ext := strings.ToLower(filepath.Ext(local)); {
	case err == nil:
		return info.IsDir() || manifest.IsImage(local) || manifest.FormatOf(local) != "" || ext == ".parquet" || ext == ".tar", nil
	case strings.Contains(local, "{") && !alone:
		return false, errors.New("braces of a dataset must be the only argument; let the shell expand them, without quotes")
	case strings.ContainsAny(local, "*?[{"):
		return true, nil
	}
	return false, fmt.Errorf("%w; give images, directories, or one campaign file", errors.Unwrap(err))
}

// datasetOf joins several paths to one dataset path in braces. A file name with braces, commas or glob characters becomes
// a file:// address, which encodes them.
func datasetOf(dir string, paths []string) string {
	encode := strings.NewReplacer("{", "%7B", "}", "%7D", ",", "%2C")
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = manifest.ResolveDataset(dir, path)
		local := strings.TrimPrefix(all[i], manifest.LocalPrefix)
		switch {
		case manifest.IsAddress(local):
			all[i] = encode.Replace(local)
		case local != all[i] || strings.ContainsAny(local, "{},"):
			all[i] = encode.Replace((&url.URL{Scheme: "file", Path: local}).String())
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return "{" + strings.Join(all, ",") + "}"
}

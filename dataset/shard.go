package dataset

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ddiff/manifest"
)

// shard reads a tar file in the manner of WebDataset: members that follow each other and have
// the same name up to the first dot of its last element are one sample, and what comes after
// that dot says what each of them is.
func (r *reading) shard(a Address, emit emitter) error {
	for _, column := range slices.Sorted(maps.Keys(r.dataset.Columns)) {
		if !slices.Contains(fileColumns, column) {
			return fmt.Errorf("%w: dataset.columns.%s: a tar shard has files only, no %s; leave it out", manifest.ErrBadList, column, column)
		}
	}
	obj, err := r.openPart(a)
	if err != nil {
		return err
	}
	defer obj.close() //nolint:errcheck // opened for reading
	var now sample
	next := int64(0)
	for first := true; first || next > 0; first = false {
		x, err := r.index(r.ctx, a, obj, next)
		for _, m := range x.Members {
			key, ext := splitMember(m.Name)
			if hiddenName(m.Name) {
				continue
			}
			if key != now.key {
				if err := r.emitSample(a, now, emit); err != nil {
					return err
				}
				now = sample{key: key}
			}
			now.members = append(now.members, m)
			now.exts = append(now.exts, ext)
			if len(now.members) > maxSample {
				return fmt.Errorf("%w: more than %d members are called %q", ErrBadArchive, maxSample, key)
			}
		}
		if errors.Is(err, ErrBadArchive) && len(now.members) > 0 {
			// What came before the damage is good.
			if err := r.emitSample(a, now, emit); err != nil {
				return err
			}
			return emit(failedPart(a.String(), err))
		}
		if err != nil {
			return err
		}
		next = x.Next
	}
	return r.emitSample(a, now, emit)
}

// fileColumns are the columns of a row that hold files.
var fileColumns = []string{"image", "measurement", "mask", "kernel"}

// maxSample is how many members a sample has at most.
const maxSample = 64

// sample is what has one name in a shard.
type sample struct {
	key     string
	members []tarMember
	exts    []string
}

// splitMember divides a name at the first dot of its last element.
func splitMember(name string) (key, ext string) {
	dir, base := path.Split(name)
	stem, ext, _ := strings.Cut(base, ".")
	return dir + stem, strings.ToLower(ext)
}

// hiddenName tells names of which a part begins with a dot, such as those that macOS adds.
func hiddenName(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// columnOf says which column of a row a member fills; empty when none.
func columnOf(ext string, columns map[string]string) string {
	for _, column := range fileColumns {
		if want, ok := columns[column]; ok {
			if want != "" && strings.EqualFold(want, ext) {
				return column
			}
			continue
		}
		last := ext[strings.LastIndex(ext, ".")+1:]
		array, image := last == "npy", manifest.IsImage("."+last)
		prefix := strings.TrimSuffix(strings.TrimSuffix(ext, last), ".")
		switch {
		case column == "image" && image && prefix == "",
			column == "measurement" && array && (prefix == "" || prefix == column),
			(column == "mask" || column == "kernel") && (array || image) && prefix == column:
			return column
		}
	}
	return ""
}

// emitSample makes a row of a sample, unless nothing in it belongs to one.
func (r *reading) emitSample(a Address, s sample, emit emitter) error {
	row := manifest.Row{Name: s.key}
	fills := map[string]*string{
		"image": &row.Image, "measurement": &row.Measurement,
		"mask": &row.Overrides.Mask, "kernel": &row.Overrides.Kernel,
	}
	problem := func(name, text string) {
		if row.Err == nil {
			row.Err = &manifest.FieldError{File: path.Base(a.base()), Field: name, Err: errors.New(text)}
		}
	}
	for i, m := range s.members {
		column := columnOf(s.exts[i], r.dataset.Columns)
		if column == "" {
			r.skip(a.Public() + "#" + m.Name)
			continue
		}
		into := fills[column]
		switch {
		case *into != "":
			problem(m.Name, fmt.Sprintf("the sample has another %s; give each its own name up to the first dot", column))
			continue
		case m.Problem != "":
			problem(m.Name, m.Problem)
		case m.Size > r.cfg.MaxBytes:
			problem(m.Name, r.tooLarge(m.Size).Error())
		}
		*into = r.memberAddress(a, m).String()
		if len(*into) > MaxAddressBytes {
			problem(m.Name, "its address is too long; use shorter names")
		}
	}
	if row.Image == "" && row.Measurement == "" {
		return nil
	}
	return emit(row)
}

// memberAddress is where a member can be read.
func (r *reading) memberAddress(a Address, m tarMember) Address {
	a.part, a.name, a.offset, a.size = member, path.Base(m.Name), m.Offset, m.Size
	return a
}

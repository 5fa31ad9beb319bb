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

// shard reads a tar file in the format of WebDataset: consecutive members with equal names up to the first dot of the
// last element are one sample. The rest of the name determines the role of the member.
func (r *reading) shard(a Address, emit emitter) error {
	for _, column := range slices.Sorted(maps.Keys(r.dataset.Columns)) {
		if !slices.Contains(fileColumns, column) {
			return fmt.Errorf("%w: dataset.columns.%s: a tar shard has only files, no %s; remove it", manifest.ErrBadList, column, column)
		}
	}
	obj, err := r.openPart(a)
	if err != nil {
		return err
	}
	defer obj.close() //nolint:errcheck // opened for reading
	var current sample
	next := int64(0)
	for first := true; first || next > 0; first = false {
		x, err := r.index(r.ctx, a, obj, next)
		for _, m := range x.Members {
			key, ext := splitMember(m.Name)
			if hiddenName(m.Name) {
				if manifest.IsImage(m.Name) {
					r.skip(a.Public()+"#"+m.Name, manifest.SkipHidden)
				}
				continue
			}
			if key != current.key {
				if err := r.emitSample(a, current, emit); err != nil {
					return err
				}
				current = sample{key: key}
			}
			current.members = append(current.members, m)
			current.exts = append(current.exts, ext)
			if len(current.members) > maxSample {
				return fmt.Errorf("%w: more than %d members have the name %q", ErrBadArchive, maxSample, key)
			}
		}
		if errors.Is(err, ErrBadArchive) && permanent(err) && len(current.members) > 0 {
			// The rows before the damage are valid.
			if err := r.emitSample(a, current, emit); err != nil {
				return err
			}
			return emit(failedPart(a.String(), err))
		}
		if err != nil {
			return err
		}
		next = x.Next
	}
	return r.emitSample(a, current, emit)
}

// fileColumns are the columns of files in a row.
var fileColumns = []string{"image", "measurement", "mask", "kernel"}

// maxSample limits the members of a sample.
const maxSample = 64

// sample is the group of members with one name.
type sample struct {
	key     string
	members []tarMember
	exts    []string
}

// splitMember splits a name at the first dot of its last element.
func splitMember(name string) (key, ext string) {
	dir, base := path.Split(name)
	stem, ext, _ := strings.Cut(base, ".")
	return dir + stem, strings.ToLower(ext)
}

// hiddenName reports whether an element of name begins with a dot, as in files that macOS adds.
func hiddenName(name string) bool {
	for element := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(element, ".") && element != "." && element != ".." {
			return true
		}
	}
	return false
}

// columnOf returns the column of a row for a member, empty for other members.
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

// emitSample emits the row of a sample, if the sample has an image or a measurement.
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
	var others []int // members without a column
	for i, m := range s.members {
		column := columnOf(s.exts[i], r.dataset.Columns)
		if column == "" {
			others = append(others, i)
			continue
		}
		into := fills[column]
		switch {
		case *into != "":
			problem(m.Name, fmt.Sprintf("sample has another %s; use different names up to the first dot", column))
			continue
		case m.Problem != "":
			problem(m.Name, m.Problem)
		case m.Size > r.cfg.MaxBytes:
			problem(m.Name, r.tooLarge(m.Size).Error())
		}
		if *into = memberAddress(a, m); len(*into) > MaxAddressBytes {
			problem(m.Name, "address is too long; use shorter names")
		}
	}
	return r.emitRow(a, s, row, others, emit)
}

// emitRow emits the row of a sample, and skips the other members. If the sample has neither image nor measurement, it is no sample of
// WebDataset: the names of its pictures have dots, and each is a row.
func (r *reading) emitRow(a Address, s sample, row manifest.Row, others []int, emit emitter) error {
	whole := row.Image != "" || row.Measurement != ""
	if whole {
		if err := emit(row); err != nil {
			return err
		}
	}
	if !whole {
		for i, m := range s.members {
			if !slices.Contains(others, i) {
				r.skip(a.Public()+"#"+m.Name, manifest.SkipAlone)
			}
		}
	}
	_, mapped := r.dataset.Columns["image"]
	for _, i := range others {
		m := s.members[i]
		switch picture := manifest.IsImage(m.Name); {
		case !picture:
			r.skip(a.Public()+"#"+m.Name, manifest.SkipKind)
		case whole || mapped:
			r.skip(a.Public()+"#"+m.Name, manifest.SkipRole)
		default:
			own := sample{key: stem(m.Name), members: []tarMember{m}, exts: []string{strings.TrimPrefix(strings.ToLower(path.Ext(m.Name)), ".")}}
			if err := r.emitSample(a, own, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

func memberAddress(a Address, m tarMember) string {
	a.part, a.name, a.offset, a.size = partMember, path.Base(m.Name), m.Offset, m.Size
	return a.String()
}

package dataset

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"
)

const (
	// indexMembers is how many members one index has. A tar file with more has several.
	indexMembers = 1 << 14
	// maxMemberName is the longest name of a member, in bytes.
	maxMemberName = 1024
)

// tarMember is a regular file in a tar file.
type tarMember struct {
	Name   string `json:"n"`
	Offset int64  `json:"o"`
	Size   int64  `json:"s"`
	// Problem is why the member cannot be read, if it cannot.
	Problem string `json:"p,omitempty"`
}

// tarIndex says where the members of a piece of a tar file are.
type tarIndex struct {
	Members []tarMember `json:"members"`
	// Next is where the next piece begins, 0 when this is the last.
	Next int64 `json:"next"`
}

// check makes sure that an index that was read is one of a tar file of size bytes.
func (x *tarIndex) check(size int64) error {
	for _, m := range x.Members {
		if m.Offset < 0 || m.Size < 0 || m.Offset > size-m.Size || m.Name == "" {
			return fmt.Errorf("%w: the index does not fit the shard", ErrBadArchive)
		}
	}
	if x.Next < 0 || x.Next > size {
		return fmt.Errorf("%w: the index does not fit the shard", ErrBadArchive)
	}
	return nil
}

// readIndex decodes an index of a tar file of size bytes.
func readIndex(data []byte, size int64) (*tarIndex, error) {
	x := &tarIndex{}
	if err := json.Unmarshal(data, x); err != nil {
		return nil, fmt.Errorf("%w: read the index: %w", ErrBadArchive, err)
	}
	err := x.check(size)
	return x, err
}

// indexTar walks up to most members of a tar file from start on, which is 0 or the Next of
// another index. Only headers are read. With an error come the members before it.
func indexTar(r *io.SectionReader, start int64, most int) (*tarIndex, error) {
	x := &tarIndex{}
	if _, err := r.Seek(start, io.SeekStart); err != nil {
		return x, err
	}
	if start == 0 {
		if err := checkMagic(r); err != nil {
			return x, err
		}
	}
	t := tar.NewReader(r)
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			x.Next = 0
			return x, nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // a name is never used as a path
			return x, fmt.Errorf("after %d members: %w", len(x.Members), tarError(err))
		}
		offset, err := r.Seek(0, io.SeekCurrent)
		if err != nil {
			return x, err
		}
		if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeGNUSparse {
			continue // directories and links; a link's target is a member itself
		}
		m := tarMember{Name: memberName(header.Name), Offset: offset, Size: header.Size, Problem: memberProblem(header)}
		if m.Problem != "" {
			m.Size = 0
		}
		if m.Offset > r.Size()-m.Size {
			return x, fmt.Errorf("%w: it ends within %q", ErrBadArchive, m.Name)
		}
		x.Members = append(x.Members, m)
		// Where a member ends that cannot be read is not always known.
		const block = 512
		next := offset + (header.Size+block-1)/block*block
		if len(x.Members) >= most && m.Problem == "" && next < r.Size() {
			x.Next = next
			return x, nil
		}
	}
}

// checkMagic refuses what is no tar file, with the remedy for compressed ones.
func checkMagic(r *io.SectionReader) error {
	var head [6]byte
	if _, err := r.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for kind, magic := range map[string]string{
		"gzip": "\x1f\x8b", "zstd": "\x28\xb5\x2f\xfd", "xz": "\xfd7zXZ\x00", "bzip2": "BZh",
	} {
		if bytes.HasPrefix(head[:], []byte(magic)) {
			return fmt.Errorf("%w: it is packed with %s, and members are read one by one; unpack it to a plain tar file", ErrBadArchive, kind)
		}
	}
	return nil
}

// tarError tells a damaged file from one that could not be read.
func tarError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
		return fmt.Errorf("%w: %w", ErrBadArchive, err)
	}
	return err
}

// memberName makes a name relative and short: it says what a row is called and no more.
func memberName(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if len(name) > maxMemberName {
		name = strings.ToValidUTF8(name[:maxMemberName], "")
	}
	if name == "" {
		return "unnamed"
	}
	return name
}

// memberProblem is what keeps a member from being read as a stretch of the file.
func memberProblem(header *tar.Header) string {
	sparse := header.Typeflag == tar.TypeGNUSparse
	for key := range header.PAXRecords {
		sparse = sparse || strings.HasPrefix(key, "GNU.sparse.")
	}
	switch {
	case sparse:
		return "it is stored as a sparse file; pack the shard without --sparse"
	case len(header.Name) > maxMemberName:
		return fmt.Sprintf("its name is longer than %d bytes", maxMemberName)
	case !utf8.ValidString(header.Name):
		return "its name is not valid UTF-8"
	case header.Size == 0:
		return "it is empty"
	}
	return ""
}

// index returns one piece of the index of a tar file, from the cache if possible. With ErrBadArchive it returns the
// members before the damage.
func (s *Sources) index(ctx context.Context, a Address, obj object, start int64) (*tarIndex, error) {
	var made *tarIndex
	data, err := s.cached(ctx, kindIndex, a, obj.version(), start, func(ctx context.Context) (_ []byte, err error) {
		if made, err = indexTar(newBlocks(ctx, obj).reader(), start, indexMembers); err != nil {
			return nil, err // a damaged shard is not cached
		}
		return json.Marshal(made)
	})
	switch {
	case made != nil:
		return made, err
	case err != nil:
		return &tarIndex{}, err
	}
	return readIndex(data, obj.length())
}

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
	// indexMembers limits the members of one index. Larger tar files have several indexes.
	indexMembers = 1 << 14
	// tarBlock is the unit of a tar file, maxRecord the number of bytes after its end that are checked.
	tarBlock  = 512
	maxRecord = 64 << 10
	// maxMemberName is the maximum length of the name of a member in bytes.
	maxMemberName = 1024
)

type tarMember struct {
	Name   string `json:"n"`
	Offset int64  `json:"o"`
	Size   int64  `json:"s"`
	// Problem is the reason why the member cannot be read, empty otherwise.
	Problem string `json:"p,omitempty"`
}

// tarIndex has the offsets of the members in one piece of a tar file.
type tarIndex struct {
	Members []tarMember `json:"members"`
	// Next is the offset of the next piece, 0 after the last piece.
	Next int64 `json:"next"`
}

// indexTar indexes up to limit members of a tar file from start, which is 0 or the Next of another index. It reads only
// headers. With an error it returns the members before the error.
func indexTar(r *io.SectionReader, start int64, limit int) (*tarIndex, error) {
	x := &tarIndex{}
	if _, err := r.Seek(start, io.SeekStart); err != nil {
		return x, err
	}
	if start == 0 {
		if err := checkMagic(r); err != nil {
			return x, err
		}
	}
	t, end := tar.NewReader(r), start // of the last member, -1 if it is unknown
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			x.Next = 0
			return x, checkEnd(r, end)
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // names are not used as paths
			return x, fmt.Errorf("after %d members: %w", len(x.Members), tarError(err))
		}
		offset, err := r.Seek(0, io.SeekCurrent)
		if err != nil {
			return x, err
		}
		if end = offset + (header.Size+tarBlock-1)/tarBlock*tarBlock; header.Typeflag != tar.TypeReg || isSparse(header) {
			end = -1 // links may state a size without having data, sparse files state the size with the holes
		}
		if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeGNUSparse && !isLink(header) {
			continue // directories
		}
		m := tarMember{Name: memberName(header.Name), Offset: offset, Size: header.Size, Problem: memberProblem(header)}
		if m.Problem != "" {
			m.Size = 0
		}
		if m.Offset > r.Size()-m.Size {
			return x, fmt.Errorf("%w: file ends within %q", ErrBadArchive, m.Name)
		}
		x.Members = append(x.Members, m)
		// The end of an unreadable member may be unknown.
		next := offset + (header.Size+tarBlock-1)/tarBlock*tarBlock
		if len(x.Members) >= limit && m.Problem == "" && next < r.Size() {
			x.Next = next
			return x, nil
		}
	}
}

// checkEnd refuses a file whose reader has reached the end of the members, of which the last one ends at an offset, without a
// block of zeros: it was cut between two members. It also refuses members after this block, which readers ignore.
func checkEnd(r *io.SectionReader, end int64) error {
	at, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if end >= 0 && at < end+tarBlock {
		return fmt.Errorf("%w: file is cut after a member: the end of the archive is missing; create the shard again", ErrBadArchive)
	}
	// Programs fill the last record, of 10 KiB by default, with zeros.
	rest := make([]byte, min(maxRecord, r.Size()-at))
	if _, err := r.ReadAt(rest, at); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(bytes.Trim(rest, "\x00")) > 0 {
		return fmt.Errorf("%w: file has data after the end of the archive; name each shard instead of joining them", ErrBadArchive)
	}
	return nil
}

func checkMagic(r *io.SectionReader) error {
	var head [6]byte
	if _, err := r.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for kind, magic := range map[string]string{
		"gzip": "\x1f\x8b", "zstd": "\x28\xb5\x2f\xfd", "xz": "\xfd7zXZ\x00", "bzip2": "BZh",
	} {
		if bytes.HasPrefix(head[:], []byte(magic)) {
			return fmt.Errorf("%w: file is compressed with %s; decompress it, since members are read individually", ErrBadArchive, kind)
		}
	}
	return nil
}

// tarError wraps errors of damaged files with ErrBadArchive and returns read errors unchanged.
func tarError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
		return fmt.Errorf("%w: %w", ErrBadArchive, err)
	}
	return err
}

// memberName makes a name relative and limits its length. It is only the name of a row.
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

// isSparse reports whether a member is stored without its holes.
func isSparse(header *tar.Header) bool {
	sparse := header.Typeflag == tar.TypeGNUSparse
	for key := range header.PAXRecords {
		sparse = sparse || strings.HasPrefix(key, "GNU.sparse.")
	}
	return sparse
}

func isLink(header *tar.Header) bool {
	return header.Typeflag == tar.TypeLink || header.Typeflag == tar.TypeSymlink
}

// memberProblem returns the reason why a member is not a contiguous range of the file, empty otherwise.
func memberProblem(header *tar.Header) string {
	switch {
	case isLink(header):
		return "stored as a link; create the shard with --dereference and --hard-dereference"
	case isSparse(header):
		return "stored as a sparse file; create the shard without --sparse"
	case len(header.Name) > maxMemberName:
		return fmt.Sprintf("name exceeds %d bytes", maxMemberName)
	case !utf8.ValidString(header.Name):
		return "name is not valid UTF-8"
	case header.Size == 0:
		return "empty member"
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
	x := &tarIndex{}
	return x, json.Unmarshal(data, x) // the cache has checked the bytes
}

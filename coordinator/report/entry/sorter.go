package entry

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"ddiff/manifest"
	"ddiff/restore/operator"
)

// ErrTemporary: the report needs a temporary file, which large campaigns do, and cannot write it.
var ErrTemporary = errors.New("temporary directory")

// maxSorted is the number of entries that a sorter holds in memory, about 16 MB.
const maxSorted = 1 << 15

// Sorter brings any number of entries into the order of [CompareEntries]. It keeps at most limit entries in memory;
// it writes the others as sorted runs to a temporary file, about 250 bytes each, and merges the runs when it is read.
type Sorter struct {
	limit   int
	ranks   map[string]int // of the known tasks; others follow, by name
	buffer  []*Entry
	Columns *Columns
	file    *os.File
	ends    []int64 // of the runs in the file
}

// Collect sorts a stream of results. It leaves out metrics with several versions on request, and returns an error that wraps
// [result.ErrVersions] otherwise. Close the sorter after use.
func Collect(results iter.Seq2[manifest.Result, error], tasks operator.Set, leaveOut bool) (*Sorter, error) {
	return collectIn(results, tasks, leaveOut, maxSorted)
}

// collectIn sorts with at most limit results in memory.
func collectIn(results iter.Seq2[manifest.Result, error], tasks operator.Set, leaveOut bool, limit int) (*Sorter, error) {
	s := &Sorter{limit: limit, ranks: make(map[string]int), Columns: &Columns{leaveOut: leaveOut}}
	for rank, name := range tasks.Names() {
		s.ranks[name] = rank
	}
	for r, err := range results {
		if err == nil {
			err = s.add(&r)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.Columns.choose(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	slices.SortFunc(s.buffer, CompareEntries)
	return s, nil
}

func (s *Sorter) add(r *manifest.Result) error {
	e, err := newEntry(r)
	if err != nil {
		return err
	}
	rank, known := s.ranks[e.Task]
	if !known {
		rank = len(s.ranks)
	}
	e.TaskRank = rank
	s.Columns.add(e, r)
	if len(s.buffer) == s.limit {
		if err := s.spill(); err != nil {
			return fmt.Errorf("sort results in a temporary file: %w", err)
		}
	}
	s.buffer = append(s.buffer, e)
	return nil
}

// spill moves the buffer to the file as a sorted run.
func (s *Sorter) spill() error {
	if s.file == nil {
		f, err := TempFile()
		if err != nil {
			return err
		}
		s.file = f
	}
	slices.SortFunc(s.buffer, CompareEntries)
	out := bufio.NewWriterSize(s.file, 1<<16)
	encoder := gob.NewEncoder(out)
	for _, e := range s.buffer {
		if err := encoder.Encode(e); err != nil {
			return TemporaryError(err)
		}
	}
	if err := out.Flush(); err != nil {
		return TemporaryError(err)
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	s.ends = append(s.ends, end)
	clear(s.buffer) // frees the entries
	s.buffer = s.buffer[:0]
	return nil
}

// All yields the entries in order, with the chosen versions of their scores. Each iteration reads them from the start.
func (s *Sorter) All() iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		open, err := s.open()
		for err == nil && len(open) > 0 {
			first := slices.MinFunc(open, func(a, b *cursor) int { return CompareEntries(a.head, b.head) }) // of few runs
			s.Columns.apply(first.head)
			if !yield(first.head, nil) {
				return
			}
			if err = first.next(); errors.Is(err, io.EOF) {
				open = slices.DeleteFunc(open, func(c *cursor) bool { return c == first })
				err = nil
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("read sorted results: %w", err))
		}
	}
}

// open places a cursor at the first entry of each run and of the buffer.
func (s *Sorter) open() ([]*cursor, error) {
	var open []*cursor
	start := int64(0)
	for _, end := range s.ends {
		decoder := gob.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), 1<<14))
		open = append(open, &cursor{read: func() (*Entry, error) {
			e := new(Entry)
			return e, decoder.Decode(e)
		}})
		start = end
	}
	if rest := s.buffer; len(rest) > 0 {
		open = append(open, &cursor{read: func() (*Entry, error) {
			if len(rest) == 0 {
				return nil, io.EOF
			}
			e := rest[0]
			rest = rest[1:]
			return e, nil
		}})
	}
	for _, c := range open {
		if err := c.next(); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// Close releases the temporary file.
func (s *Sorter) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// cursor is a position in a run.
type cursor struct {
	head *Entry
	read func() (*Entry, error)
}

// next returns io.EOF at the end of the run.
func (c *cursor) next() (err error) {
	c.head, err = c.read()
	return err
}

// TempFile opens a temporary file without a name: closing it, or the end of the process, frees its space. The error wraps
// ErrTemporary.
func TempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "ddiff-report-")
	if err != nil {
		return nil, TemporaryError(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(TemporaryError(err), f.Close())
	}
	return f, nil
}

// TemporaryError marks an error of a temporary file.
func TemporaryError(err error) error {
	return fmt.Errorf("%w %s: %w; set TMPDIR to a directory with free space", ErrTemporary, os.TempDir(), err)
}

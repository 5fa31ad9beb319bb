package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"ddiff/internal/regular"
	"ddiff/manifest"
)

type fileObject struct {
	file   *os.File
	size   int64
	opened string // fileVersion
}

func openFile(path string) (object, error) {
	if err := manifest.CheckFile(path); err != nil {
		return nil, fileError(err)
	}
	f, _, err := regular.Open(path, regular.NoLimit)
	if err != nil {
		return nil, fileError(err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close() // opened for reading
		return nil, err
	}
	return &fileObject{file: f, size: info.Size(), opened: fileVersion(info)}, nil
}

func fileVersion(info os.FileInfo) string {
	return fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano())
}

func (f *fileObject) readRange(ctx context.Context, offset, size int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	size = max(0, min(size, f.size-offset))
	data := make([]byte, size)
	n, err := f.file.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		return nil, fileError(err)
	}
	info, err := f.file.Stat()
	if err == nil && fileVersion(info) != f.opened {
		err = ErrChanged // written in place
	}
	return data[:n], fileError(err)
}

func (f *fileObject) length() int64   { return f.size }
func (f *fileObject) version() string { return f.opened }

func (f *fileObject) close() error { return f.file.Close() }

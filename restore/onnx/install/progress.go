package install

import (
	"context"
	"io"
)

// Progress is called at the beginning of each stage, with one of the Stage constants.
type Progress func(stage string)

// The stages of an installation, in order. A release that is already installed passes the first two only.
const (
	StageWait     = "wait"     // wait for another installation
	StageCheck    = "check"    // verify the installed files
	StageDownload = "download" // download the archive
	StageVerify   = "verify"   // verify the archive
	StageExtract  = "extract"  // extract and verify the libraries
)

// begin reports the beginning of a stage.
func (report Progress) begin(stage string) {
	if report != nil {
		report(stage)
	}
}

// contextReader reads from r until ctx ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

package install

import (
	"context"
	"io"
)

// Progress is told how an installation goes on: done of total bytes of a stage, one of the Stage
// constants. Each stage reports at its beginning and its end; downloads by a package client
// report nothing between the two. A total of 0 means that the stage has no known size.
type Progress func(stage string, done, total int64)

// The stages of an installation, in order. An installed release only goes through the first two.
const (
	StageWait     = "wait"     // for another installation to end
	StageCheck    = "check"    // what is installed against its checksums
	StageDownload = "download" // the archive
	StageVerify   = "verify"   // the archive against its checksum
	StageExtract  = "extract"  // the libraries
)

// progressStep is how many bytes go by between two reports of a stage.
const progressStep = 1 << 20

// stage counts the bytes of one stage, over any number of readers.
type stage struct {
	name        string
	done, total int64
	report      Progress
}

// begin reports that a stage of total bytes begins.
func (report Progress) begin(name string, total int64) *stage {
	s := &stage{name: name, total: total, report: report}
	s.tell()
	return s
}

func (s *stage) tell() {
	if s.report != nil {
		s.report(s.name, s.done, s.total)
	}
}

// end reports that the stage is complete.
func (s *stage) end() {
	s.done = s.total
	s.tell()
}

// reader reads r, counts its bytes, and ends with the context's error.
func (s *stage) reader(ctx context.Context, r io.Reader) io.Reader {
	return &stageReader{ctx: ctx, inner: r, stage: s}
}

type stageReader struct {
	ctx   context.Context
	inner io.Reader
	stage *stage
}

func (r *stageReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.inner.Read(p)
	before := r.stage.done
	r.stage.done += int64(n)
	if before/progressStep != r.stage.done/progressStep {
		r.stage.tell()
	}
	return n, err
}

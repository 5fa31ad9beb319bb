package telemetry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// fileClient appends traces to a file in the format of the OTLP file exporter: one TracesData object in OTLP/JSON per
// line.
//
// Each line is one write call on a file opened for appending. A killed process therefore leaves at most one incomplete
// last line, and several processes may share a file. Start terminates an incomplete line, so that it damages no other
// line.
type fileClient struct {
	path string
	file *os.File // from Start on
}

var _ otlptrace.Client = (*fileClient)(nil)

// Start opens the file and creates missing parent directories.
func (c *fileClient) Start(context.Context) error {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return fmt.Errorf("create directory of trace file %s: %w", c.path, err)
	}
	file, err := os.OpenFile(c.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("open trace file: %w", err)
	}
	if err := terminateLastLine(file); err != nil {
		return errors.Join(fmt.Errorf("open trace file %s: %w", c.path, err), file.Close())
	}
	c.file = file
	return nil
}

// terminateLastLine appends a missing newline to the file's last line. A file without a size, such as a pipe, is left
// unchanged.
func terminateLastLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err = file.Write([]byte{'\n'})
	return err
}

// Stop closes the file, which then contains all uploaded spans.
func (c *fileClient) Stop(context.Context) error {
	if err := c.file.Close(); err != nil {
		return fmt.Errorf("close trace file: %w", err)
	}
	return nil
}

// UploadTraces appends a line with spans. It takes ownership of spans and modifies their ids.
func (c *fileClient) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	line, err := encodeLine(spans)
	if err != nil {
		return fmt.Errorf("encode spans for trace file %s: %w", c.path, err)
	}
	if _, err := c.file.Write(line); err != nil {
		return fmt.Errorf("write trace file: %w", err)
	}
	return nil
}

// encodeLine returns spans as one OTLP/JSON line: the JSON mapping of protobuf, except that enums are integers, and
// trace and span ids are hexadecimal instead of base64.
func encodeLine(spans []*tracepb.ResourceSpans) ([]byte, error) {
	if err := hexIDs(spans); err != nil {
		return nil, err
	}
	data := &tracepb.TracesData{ResourceSpans: spans}
	encoded, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(data)
	if err != nil {
		return nil, err
	}
	// Whitespace from protojson differs between builds; compacting makes it stable.
	var line bytes.Buffer
	line.Grow(len(encoded) + 1)
	if err := json.Compact(&line, encoded); err != nil {
		return nil, err
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}

// hexIDs replaces each id by the bytes whose base64 is the id's hexadecimal text. Hexadecimal digits are base64 digits,
// and 16 or 32 digits are complete base64 groups.
func hexIDs(spans []*tracepb.ResourceSpans) error {
	for _, resource := range spans {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				ids := []*[]byte{&span.TraceId, &span.SpanId, &span.ParentSpanId}
				for _, link := range span.GetLinks() {
					ids = append(ids, &link.TraceId, &link.SpanId)
				}
				for _, id := range ids {
					text, err := base64.StdEncoding.DecodeString(hex.EncodeToString(*id))
					if err != nil {
						return fmt.Errorf("id of %d bytes: %w", len(*id), err)
					}
					*id = text
				}
			}
		}
	}
	return nil
}

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
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// fileClient appends traces to a file as the OTLP file exporter specification has it: one
// TracesData object in OTLP/JSON per line.
//
// A line is written by one write call on a file opened for appending, so a killed process leaves
// at most its last line torn, and several processes may share a file. A torn line that is found
// on opening is closed, so that it spoils no line but itself.
type fileClient struct {
	path string

	mu   sync.Mutex
	file *os.File // nil before Start and after Stop
}

var _ otlptrace.Client = (*fileClient)(nil)

func newFileClient(path string) *fileClient { return &fileClient{path: path} }

// Start opens the file, making it and its parent directories where they are missing.
func (c *fileClient) Start(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return fmt.Errorf("make the directory of trace file %s: %w", c.path, err)
	}
	file, err := os.OpenFile(c.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("open trace file: %w", err)
	}
	if err := closeTornLine(file); err != nil {
		return errors.Join(fmt.Errorf("open trace file %s: %w", c.path, err), file.Close())
	}
	c.file = file
	return nil
}

// closeTornLine ends the file's last line if a newline is missing there. A file without a size,
// such as a pipe, has no torn line.
func closeTornLine(file *os.File) error {
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

// Stop closes the file. What was uploaded before is in it.
func (c *fileClient) Stop(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	file := c.file
	c.file = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("close trace file: %w", err)
	}
	return nil
}

// UploadTraces appends one line with spans. It owns spans and rewrites their identities.
func (c *fileClient) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	line, err := encodeLine(spans)
	if err != nil {
		return fmt.Errorf("encode spans for trace file %s: %w", c.path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return fmt.Errorf("write trace file %s: %w", c.path, os.ErrClosed)
	}
	if _, err := c.file.Write(line); err != nil {
		return fmt.Errorf("write trace file: %w", err)
	}
	return nil
}

// encodeLine returns spans as one OTLP/JSON line. That format is the JSON mapping of protobuf with
// two exceptions: enums are integers, and trace and span identities are hexadecimal instead of
// base64.
func encodeLine(spans []*tracepb.ResourceSpans) ([]byte, error) {
	if err := hexIdentities(spans); err != nil {
		return nil, err
	}
	data := &tracepb.TracesData{ResourceSpans: spans}
	encoded, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(data)
	if err != nil {
		return nil, err
	}
	// protojson varies its spaces from build to build; the file does not.
	var line bytes.Buffer
	line.Grow(len(encoded) + 1)
	if err := json.Compact(&line, encoded); err != nil {
		return nil, err
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}

// hexIdentities replaces each identity by the bytes whose base64 is the identity's hexadecimal
// text: hexadecimal digits are base64 digits too, and 16 or 32 of them make whole base64 groups.
func hexIdentities(spans []*tracepb.ResourceSpans) error {
	for _, resource := range spans {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				identities := []*[]byte{&span.TraceId, &span.SpanId, &span.ParentSpanId}
				for _, link := range span.GetLinks() {
					identities = append(identities, &link.TraceId, &link.SpanId)
				}
				for _, identity := range identities {
					text, err := base64.StdEncoding.DecodeString(hex.EncodeToString(*identity))
					if err != nil {
						return fmt.Errorf("identity of %d bytes: %w", len(*identity), err)
					}
					*identity = text
				}
			}
		}
	}
	return nil
}

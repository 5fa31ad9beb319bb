package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// provenance states how the files of a release were made.
type provenance struct{ source, commit, version, builder string }

// write writes an in-toto statement with the predicate of SLSA 1.0 about the files that a list of sha256sum names.
func (p provenance) write(sums, to string) error {
	data, err := os.ReadFile(sums)
	if err != nil {
		return err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1"}
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			return fmt.Errorf("%s: want lines of sha256sum, got %q", sums, line)
		}
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{Name: filepath.Base(name), Digest: map[string]string{"sha256": sum}})
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": p.version})
	if err != nil {
		return err
	}
	predicate := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType: "urn:ddiff:make-release", ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{{Uri: "git+" + p.source, Digest: map[string]string{"gitCommit": p.commit}}},
		},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: p.builder}},
	}
	if err := predicate.Validate(); err != nil {
		return err
	}
	text, err := protojson.Marshal(predicate)
	if err != nil {
		return err
	}
	statement.Predicate = &structpb.Struct{}
	if err := protojson.Unmarshal(text, statement.Predicate); err != nil {
		return err
	}
	if err := statement.Validate(); err != nil {
		return err
	}
	return writeStable(statement, to)
}

// writeStable writes a message as JSON with equal bytes each time: protojson varies its spaces.
func writeStable(m proto.Message, to string) error {
	text, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(to, append(out.Bytes(), '\n'), 0o644)
}

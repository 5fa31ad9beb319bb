package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"ddiff/manifest"
)

// TestSchema compares the schema with what the program reads: the campaign files of the examples, and wrong ones.
func TestSchema(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(ddiff(t, "schema").stdout))
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("campaign.json", document))
	schema, err := c.Compile("campaign.json")
	must(t, err)
	accepts := func(campaign string) error {
		var fields any
		must(t, yaml.Unmarshal([]byte(campaign), &fields))
		return schema.Validate(fields)
	}

	examples, err := filepath.Glob("../../examples/*/*.yaml")
	must(t, err)
	top, err := filepath.Glob("../../examples/*.yaml")
	must(t, err)
	if examples = append(examples, top...); len(examples) < 15 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, path := range examples {
		if err := accepts(string(read(t, path))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}

	const begin = "dataset: {path: photos}\n"
	for campaign, valid := range map[string]bool{
		begin + "tasks: [hdr]": true,
		begin + "tasks: [{name: hdr, sigma: [0.01, 0.02]}]\nsigma: 0.1":                                            true,
		begin + "tasks: [{name: super_resolution, params: {factor: [2, 4]}, solver: {lambda: 2}}]\nsteps: [5, 10]": true,
		begin + "tasks: [{operator: blur.onnx, params: {gain: 2}}]\ntile: 256\nsplit: {tune: [a, b]}":              true,
		begin + "tasks: [{name: hdr, solver: {data_step: [exact, gradient]}}]\nsplit: {tune: 0.5}\ntile: auto":     true,
		begin + "tasks: [hdr]\nsigmma: 0.1":                   false,
		begin + "tasks: [hdr]\nsigma: 2":                      false,
		begin + "tasks: [hdr]\nsigma: loud":                   false,
		begin + "tasks: hdr":                                  false,
		begin + "tasks: [sharpen]":                            false,
		begin + "tasks: [hdr]\nmethods: [adam]":               false,
		begin + "tasks: [hdr]\nsolver: {lamda: 1}":            false,
		begin + "tasks: [{name: hdr, steps: many}]":           false,
		"dataset: {path: photos, fit: stretch}\ntasks: [hdr]": false,
		"tasks: [hdr]":                                        false,
	} {
		read, err := manifest.Parse("campaign.yaml", []byte(campaign), t.TempDir())
		if err == nil {
			err = read.Validate(manifest.Catalogue{})
		}
		if (err == nil) != valid {
			t.Errorf("%s\nvalid by the program: %t, %v", campaign, err == nil, err)
		}
		if err := accepts(campaign); (err == nil) != valid {
			t.Errorf("%s\nvalid by the schema: %t, %v", campaign, err == nil, err)
		}
	}
}

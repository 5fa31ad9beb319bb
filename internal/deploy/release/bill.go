package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"ddiff/internal/restore/onnx/install"
)

// bill is the content of a software bill of materials.
type bill struct {
	program, arch string
	version       string // that the program prints
	info          *debug.BuildInfo
	modules       []component
	builds        []install.Build
	models        []model
}

// write writes the SBOM as JSON. It has no serial number and the time of the commit, so that equal programs have equal SBOMs.
func (b bill) write(file string) (err error) {
	program, err := os.ReadFile(b.program)
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, s := range b.info.Settings {
		settings[s.Key] = s.Value
	}
	const root = "ddiff"
	main := cyclonedx.Component{
		BOMRef: root, Type: cyclonedx.ComponentTypeApplication, Name: "ddiff", Version: b.version,
		Licenses: licences("Apache-2.0"), Hashes: sha256Of(fmt.Sprintf("%x", sha256.Sum256(program))),
		Properties: &[]cyclonedx.Property{
			{Name: "ddiff:commit", Value: settings["vcs.revision"]}, {Name: "ddiff:platform", Value: "linux/" + b.arch},
		},
	}
	var components []cyclonedx.Component
	var refs []string
	add := func(c cyclonedx.Component) {
		components, refs = append(components, c), append(refs, c.BOMRef)
	}
	for _, m := range b.modules {
		purl := "pkg:golang/" + m.name + "@" + m.version
		add(cyclonedx.Component{
			BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: m.name, Version: m.version, PackageURL: purl, Licenses: licences(m.ids...),
		})
	}
	for _, r := range b.builds {
		c, err := runtimeComponent(r)
		if err != nil {
			return err
		}
		add(c)
	}
	for _, m := range b.models {
		add(cyclonedx.Component{
			BOMRef: m.file, Type: cyclonedx.ComponentTypeMachineLearningModel, Name: m.file, Hashes: sha256Of(m.SHA256),
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{Name: m.Card.License}}},
		})
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = ""
	bom.Metadata = &cyclonedx.Metadata{Component: &main, Timestamp: settings["vcs.time"]}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: root, Dependencies: &refs}}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	err = cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return errors.Join(err, out.Close())
}

// runtimeComponent describes a release of ONNX Runtime with its files.
func runtimeComponent(r install.Build) (cyclonedx.Component, error) {
	purl, known := map[string]string{
		install.ClientNPM:   "pkg:npm/onnxruntime-node@" + r.Version,
		install.ClientPip:   "pkg:pypi/" + runtimeName(r) + "@" + r.Version,
		install.ClientMaven: "pkg:maven/com.microsoft.onnxruntime/onnxruntime_gpu@" + r.Version,
		install.ClientCurl:  "pkg:github/microsoft/onnxruntime@v" + r.Version,
	}[r.Client]
	if !known {
		return cyclonedx.Component{}, fmt.Errorf("%s is from the unknown client %q", r.Archive, r.Client)
	}
	archive, err := archiveHash(r.Digest)
	if err != nil {
		return cyclonedx.Component{}, fmt.Errorf("digest of %s: %w", r.Archive, err)
	}
	var files []cyclonedx.Component
	for _, f := range r.Files {
		files = append(files, cyclonedx.Component{
			BOMRef: purl + "#" + f.Name, Type: cyclonedx.ComponentTypeFile, Name: f.Name, Hashes: sha256Of(f.SHA256),
		})
	}
	return cyclonedx.Component{
		BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: runtimeName(r), Version: r.Version, PackageURL: purl,
		Licenses: licences("MIT"), Components: &files,
		ExternalReferences: &[]cyclonedx.ExternalReference{{
			Type: cyclonedx.ERTypeDistribution, URL: r.Archive, Hashes: &[]cyclonedx.Hash{archive},
		}},
	}, nil
}

// archiveHash parses a digest in the form of [install.Build].
func archiveHash(text string) (cyclonedx.Hash, error) {
	algorithm, value, _ := strings.Cut(text, ":")
	if algorithm == "sha256" {
		return cyclonedx.Hash{Algorithm: cyclonedx.HashAlgoSHA256, Value: value}, nil
	}
	sum, err := base64.StdEncoding.DecodeString(value)
	return cyclonedx.Hash{Algorithm: cyclonedx.HashAlgoSHA512, Value: hex.EncodeToString(sum)}, err
}

func sha256Of(sum string) *[]cyclonedx.Hash {
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
}

// licences returns licences by SPDX identifiers.
func licences(ids ...string) *cyclonedx.Licenses {
	var all cyclonedx.Licenses
	for _, id := range ids {
		all = append(all, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	return &all
}

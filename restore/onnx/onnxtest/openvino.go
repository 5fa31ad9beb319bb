package onnxtest

import (
	"context"
	"crypto/sha256"
	_ "embed" // the source of the vendor plugin
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ddiff/restore/onnx/install"
	"ddiff/restore/onnx/onnxruntime"
)

//go:embed testdata/vendor.c
var vendorSource []byte

// pluginVar is the variable by which the vendor plugin finds the plugin behind it.
const pluginVar = "DDIFF_TEST_PLUGIN"

var (
	openVINOPlugin = sync.OnceValues(findPlugin)
	openVINO       = sync.OnceValues(func() (*onnxruntime.Runtime, error) {
		path, err := openVINOPlugin()
		if err != nil {
			return nil, err
		}
		rt, err := open()
		if err != nil {
			return nil, err
		}
		return rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderOpenVINO, Plugin: path})
	})
)

// OpenVINO returns the process's runtime on OpenVINO. The test is skipped without the plugin, see OpenVINOPlugin.
func OpenVINO(tb testing.TB) *onnxruntime.Runtime {
	tb.Helper()
	OpenVINOPlugin(tb)
	rt, err := openVINO()
	if err != nil {
		tb.Fatalf("open OpenVINO: %v", err)
	}
	return rt
}

// OpenVINOPlugin returns the path of a plugin that computes on this CPU, also for child processes. On a CPU that Intel did
// not make it is one around the installed plugin that reports Intel as the vendor. The test is skipped if the plugin is
// not installed, or if the second one cannot be compiled.
func OpenVINOPlugin(tb testing.TB) string {
	tb.Helper()
	path, err := openVINOPlugin()
	if err != nil {
		tb.Skipf("no OpenVINO: %v", err)
	}
	return path
}

func findPlugin() (string, error) {
	installed, err := install.LocatePlugin("")
	if err != nil {
		return "", err
	}
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	if strings.Contains(string(cpu), "GenuineIntel") {
		return installed.Path, nil
	}
	if err := os.Setenv(pluginVar, installed.Path); err != nil {
		return "", err
	}
	return compileVendor()
}

// compileVendor compiles the vendor plugin, or returns that of an earlier test.
func compileVendor() (string, error) {
	headers, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		return "", fmt.Errorf("find the headers of ONNX Runtime: %w", err)
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ddiff-test-%x", sha256.Sum256(append(vendorSource, headers...)))[:24])
	library := filepath.Join(dir, "libvendor.so")
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	work, err := os.MkdirTemp("", "ddiff-test-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary directory
	source, built := filepath.Join(work, "vendor.c"), filepath.Join(work, "libvendor.so")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(source, vendorSource, 0o644)); err != nil {
		return "", err
	}
	cc := exec.CommandContext(context.Background(), "cc", "-shared", "-fPIC", "-O1", "-I", strings.TrimSpace(string(headers)), "-o", built, source, "-ldl")
	if out, err := cc.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile a plugin for a CPU of another vendor than Intel: %w: %s", err, out)
	}
	return library, os.Rename(built, library)
}

package main_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const secret = "Zq7Secret"

// wantNoSecret checks the output of a process and the files below a directory.
func wantNoSecret(t *testing.T, e ended, dir string) {
	t.Helper()
	if strings.Contains(e.stdout+e.stderr, secret) {
		t.Errorf("the secret is in the output\n%v", e)
	}
	if dir == "" {
		return
	}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the secret is in %s", path)
		}
		return err
	}))
}

// TestSignedAddresses: the signature of an address is in no result, page, trace or message. A run with another signature
// resumes.
func TestSignedAddresses(t *testing.T) {
	t.Parallel()
	photo := read(t, photograph("coffee"))
	signature := secret + "1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("X-Amz-Signature") != signature {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/coffee.png":
			w.Write(photo) //nolint:errcheck // the client notices
		case "/half.png":
			w.Write(photo[:len(photo)/2]) //nolint:errcheck // the client notices
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	list := filepath.Join(dir, "list.csv")
	run := func() ended {
		var rows strings.Builder
		rows.WriteString("image\n")
		for _, name := range []string{"coffee", "half", "missing"} {
			rows.WriteString(server.URL + "/" + name + ".png?X-Amz-Signature=" + signature + "\n")
		}
		rows.WriteString("https://me:" + secret + "@127.0.0.1/x.png\nhttps://10.0.0.1/x.tiff?sig=" + secret + "\nhttps://127.0.0.1/%" + secret + "\n")
		write(t, list, []byte(rows.String()))
		return restore(t, "--images", list, "--task", "hdr", "--steps", "3", "--out", out, "--allow-http", "--allow-network", "127.0.0.0/8",
			"--source-cache", "-1", "--trace-file", filepath.Join(out, "trace.jsonl"))
	}
	e := run()
	wantCode(t, e, 3)
	wantCounts(t, e, 1, 5, 0, out)
	wantMessage(t, e, server.URL+"/half.png", "not enough pixel data")
	wantNoSecret(t, e, out)
	image := filepath.Join(folderOf(t, out, "hdr"), "restored.png")
	if !strings.Contains(passportText(t, image), server.URL+"/coffee.png\"") {
		t.Error("the passport lacks the address of the source")
	}
	before := stamps(t, out)[image]
	signature = secret + "2"
	e = run()
	wantCounts(t, e, 1, 5, 0, out)
	wantNoSecret(t, e, out)
	if after := stamps(t, out)[image]; after != before {
		t.Errorf("the image was restored again: %v, was %v", after, before)
	}
	e = ddiff(t, "verify", image)
	wantCode(t, e, 0)
	e = ddiff(t, "replay", image)
	wantCode(t, e, 0)
	wantMessage(t, e, "coffee.png is on a server", "--root", "using the arrays beside")
	// A single image as the dataset.
	e = restore(t, "--images", server.URL+"/coffee.png?X-Amz-Signature="+signature, "--task", "hdr", "--steps", "3", "--out", out+"-2",
		"--allow-http", "--allow-network", "127.0.0.0/8", "--source-cache", "-1")
	wantCode(t, e, 0)
	wantNoSecret(t, e, out+"-2")
	e = restore(t, "https://me:"+secret+"@127.0.0.1/a.png", "https://127.0.0.1/b.png", "--task", "hdr", "--out", out+"-3")
	wantCode(t, e, 2)
	wantNoSecret(t, e, "")
}

// TestCredentialsInAddresses: no command accepts or repeats credentials in an address.
func TestCredentialsInAddresses(t *testing.T) {
	skipLong(t)
	t.Parallel()
	for _, address := range []string{
		"s3://key:" + secret + "@bucket/out", "s3://bucket/out?endpoint=https://key:" + secret + "@127.0.0.1:1",
		"s3://bucket/out?secret_key=" + secret, "s3://bucket/out#" + secret, "s3://bucket/out?region=%" + secret,
		"https://key:" + secret + "@host/out",
	} {
		for _, args := range [][]string{
			small("--images", photograph("coffee"), "--task", "hdr", "--out", address),
			small("--images", photograph("coffee"), "--task", "hdr", "--dry-run", "--out", address),
			small("--images", address, "--task", "hdr", "--out", t.TempDir()),
			{"report", address}, {"verify", address}, {"replay", address}, {"gc", address},
			{"pull", address, filepath.Join(t.TempDir(), "copy")}, {"compare", address, t.TempDir()},
		} {
			e := ddiff(t, args...)
			if e.code == 0 {
				t.Errorf("%q: exit code 0", args)
			}
			wantNoSecret(t, e, "")
		}
	}
}

// TestSignedNetworks: a command that expects a network on this machine does not repeat the signature of an address.
func TestSignedNetworks(t *testing.T) {
	t.Parallel()
	address := "https://host/net.onnx?X-Amz-Signature=" + secret
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, []byte("dataset: {path: "+photograph("coffee")+"}\ntasks: [{operator: \""+address+"\"}]\nprior: \""+address+"\"\n"))
	for _, args := range [][]string{
		small("--images", photograph("coffee"), "--task", "hdr", "--prior", address, "--out", t.TempDir()),
		small("--images", photograph("coffee"), "--operator", address, "--out", t.TempDir()),
		{"run", file, "--out", t.TempDir()}, {"run", file, "--prior", "bundled", "--out", t.TempDir()},
		{"prior", "inspect", address}, {"prior", "check", address}, {"operator", "check", address},
	} {
		e := ddiff(t, args...)
		wantCode(t, e, 7)
		wantMessage(t, e, " https://host/net.onnx: no such file")
		wantNoSecret(t, e, "")
	}
}

package main_test

import (
	"archive/tar"
	"bytes"
	"context"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/s3test"
)

// bounded runs the program. It fails if the process takes a minute or more memory than a number of MiB.
func bounded(t *testing.T, mib int64, args ...string) ended {
	t.Helper()
	return boundedIn(t, mib, nil, args...)
}

// boundedIn is bounded with further variables of the environment.
func boundedIn(t *testing.T, mib int64, env []string, args ...string) ended {
	t.Helper()
	lib, err := library()
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(environment(), install.EnvVar+"="+lib.Path), env...)
	e, peak := endWithPeak(t, cmd)
	if ctx.Err() != nil {
		t.Fatalf("%q did not end within a minute\n%v", args, e)
	}
	if peak > mib {
		t.Errorf("%q took %d MiB, at most %d MiB expected\n%v", args, peak, mib, e)
	}
	return e
}

// TestSpecialFiles gives pipes, devices and huge files in the place of every kind of file. No command blocks on them or
// reads them into memory.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for _, name := range []string{"pipe.png", "pipe.csv", "pipe.tar", "pipe.yaml", "pipe.onnx"} {
		must(t, os.Symlink(pipe, filepath.Join(dir, name)))
	}
	must(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero.yaml")))
	huge := filepath.Join(dir, "huge.yaml")
	write(t, huge, nil)
	must(t, os.Truncate(huge, 20<<30)) // sparse
	good := photographs(t, "coffee")
	path := func(name string) string { return filepath.Join(dir, name) }
	run := func(args ...string) []string { return small(append([]string{"--task", "hdr"}, args...)...) }
	for name, c := range map[string]struct {
		args    []string
		code    int
		message []string
	}{
		"image":                {run(path("pipe.png")), 3, []string{"pipe.png", "not a regular file"}},
		"list":                 {run("--images", path("pipe.csv")), 2, []string{"not a regular file"}},
		"shard":                {run("--images", path("pipe.tar")), 2, []string{"not a regular file"}},
		"campaign":             {[]string{"run", path("pipe.yaml")}, 2, []string{"pipe.yaml", "pipe", "give a file"}},
		"huge campaign":        {[]string{"run", huge}, 2, []string{"huge", "larger than 1 MiB"}},
		"endless campaign":     {[]string{"run", path("zero.yaml")}, 2, []string{"zero.yaml", "device"}},
		"prior":                {run("--images", good, "--prior", pipe), 7, []string{pipe, "not a regular file"}},
		"endless prior":        {run("--images", good, "--prior", "/dev/zero"), 7, []string{"/dev/zero", "not a regular file"}},
		"huge prior":           {run("--images", good, "--prior", huge), 7, []string{huge, "too large"}},
		"prior inspect":        {[]string{"prior", "inspect", pipe}, 7, []string{pipe, "not a regular file"}},
		"prior card":           {[]string{"prior", "card", pipe, "--set", "name=x"}, 7, []string{pipe, "not a regular file"}},
		"prior check":          {[]string{"prior", "check", "/dev/zero"}, 7, []string{"/dev/zero", "not a regular file"}},
		"operator check":       {[]string{"operator", "check", pipe}, 7, []string{pipe, "not a regular file"}},
		"replay":               {[]string{"replay", pipe}, 3, []string{pipe, "not a regular file"}},
		"runtime library":      {run("--images", good, "--onnxruntime", pipe), 4, []string{pipe, "is not a file"}},
		"authorities":          {[]string{"worker", "--simulate", "1s", "--nats", "nats://127.0.0.1:1", "--nats-ca", "/dev/zero"}, 2, []string{"/dev/zero", "not a regular file"}},
		"server's authorities": {[]string{"list", "--server-ca", "/dev/zero"}, 2, []string{"/dev/zero", "not a regular file"}},
		"huge credentials":     {[]string{"worker", "--simulate", "1s", "--nats", "nats://127.0.0.1:1", "--creds", huge}, 2, []string{huge, "too large"}},
		"pipe of a signing":    {[]string{"worker", "--simulate", "1s", "--nats", "nats://127.0.0.1:1", "--nkey", pipe}, 2, []string{pipe, "not a regular file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if args[0] == "run" {
				args = append(slices.Clone(args), "--out", filepath.Join(t.TempDir(), "out"))
			}
			e := bounded(t, 600, args...)
			wantCode(t, e, c.code)
			wantMessage(t, e, c.message...)
		})
	}
	t.Run("verify", func(t *testing.T) {
		t.Parallel()
		e := bounded(t, 300, "verify", pipe)
		wantCode(t, e, 3)
		wantLine(t, e, pipe, "not a regular file")
	})
}

// TestPassportNamesSpecialFile: the passport of a received image may name any file as its source.
func TestPassportNamesSpecialFile(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "3")
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for _, source := range []string{pipe, "/dev/zero"} {
		received := filepath.Join(t.TempDir(), "received.png")
		copyFile(t, filepath.Join(folderOf(t, out, "hdr"), "restored.png"), received)
		text := passportText(t, received)
		before, rest, ok := strings.Cut(text, `"image":{"path":"`)
		if !ok {
			t.Fatalf("the passport has no image: %s", text)
		}
		_, after, _ := strings.Cut(rest, `"`)
		setPassport(t, received, before+`"image":{"path":"`+source+`"`+after)
		e := bounded(t, 300, "verify", received)
		wantLine(t, e, "image is not checked", source)
		e = bounded(t, 300, "replay", received)
		wantMessage(t, e, source, "is gone")
	}
}

// TestSpecialExternalData: a prior whose external data are a device, a pipe or a huge file cannot be used.
func TestSpecialExternalData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "prior.onnx")
	writePrior(t, path, 3, card(3))
	m := &onnxpb.ModelProto{}
	must(t, proto.Unmarshal(read(t, path), m))
	m.Graph.Initializer = append(m.Graph.Initializer, &onnxpb.TensorProto{
		Name: "w", DataType: 1, Dims: []int64{1}, DataLocation: onnxpb.TensorProto_EXTERNAL,
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: "location", Value: "w.data"}},
	})
	data, err := proto.Marshal(m)
	must(t, err)
	write(t, path, data)
	weights := filepath.Join(dir, "w.data")
	for name, plant := range map[string]func(){
		"not a regular file but a device": func() { must(t, os.Symlink("/dev/zero", weights)) },
		"not a regular file but a pipe":   func() { must(t, syscall.Mkfifo(weights, 0o600)) },
		"tensor w has 21474836480 bytes, its shape 4": func() {
			write(t, weights, nil)
			must(t, os.Truncate(weights, 20<<30))
		},
	} {
		plant()
		e := bounded(t, 300, "prior", "inspect", path)
		wantCode(t, e, 7)
		wantMessage(t, e, weights, name)
		must(t, os.Remove(weights))
	}
	e := bounded(t, 300, "prior", "inspect", path)
	wantCode(t, e, 7)
	wantMessage(t, e, weights, "does not exist; put it beside the model")
	if strings.Contains(e.stderr, "--prior bundled") {
		t.Errorf("the message blames the prior, not its weights: %s", e.stderr)
	}
}

// TestWideImage: an image that needs too much memory fails with one line, and the others are restored. Its matrices alone
// would take 40 GB.
func TestWideImage(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	for name, width := range map[string]int{"small": 64, "wide": 100_000} {
		img := image.NewGray(image.Rect(0, 0, width, min(width, 64)))
		if width > 64 {
			img = image.NewGray(image.Rect(0, 0, width, 1))
		}
		for i := range img.Pix {
			img.Pix[i] = uint8(i * 7)
		}
		var buf bytes.Buffer
		must(t, png.Encode(&buf, img))
		write(t, filepath.Join(dir, name+".png"), buf.Bytes())
	}
	e := bounded(t, 700, "run", "--threads", "1", "--memory-share", "0.02", "--images", dir, "--fit", "pad", "--task", "super_resolution,motion_deblur", "--param", "motion_deblur.size=9",
		"--steps", "3", "--out", out)
	wantCode(t, e, 3)
	wantCounts(t, e, 2, 2, 0, out)
	for _, task := range []string{"super_resolution", "motion_deblur"} {
		wantMessage(t, e, "failed: wide ("+task+")", "100000×8", "use --tile auto, --fit center_crop or resize")
	}
}

// TestPublishedFiguresInPipe: a pipe in the place of a file is refused before it is opened.
func TestPublishedFiguresInPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	e := ddiff(t, "report", t.TempDir(), "--published", pipe)
	wantCode(t, e, 2)
	wantMessage(t, e, "--published", pipe, "not a regular file but a pipe")
}

// TestReportReplacesNoDevice: a report goes into a pipe or a device, which stays, and not over a directory.
func TestReportReplacesNoDevice(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photographs(t, "coffee"), "--task", "hdr", "--steps", "3")
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // no end waits for the other
	must(t, err)
	defer reader.Close()
	wantCode(t, ddiff(t, "report", out, "--format", "csv", "--out", pipe), 0)
	info, err := os.Lstat(pipe)
	must(t, err)
	if info.Mode()&os.ModeNamedPipe == 0 {
		t.Fatalf("the pipe is now %v", info.Mode())
	}
	got := make([]byte, 1<<16)
	n, err := reader.Read(got)
	must(t, err)
	if !strings.HasPrefix(string(got[:n]), "item,image,task,") {
		t.Errorf("the pipe has %.100q", got[:n])
	}
	dir := t.TempDir()
	e := ddiff(t, "report", out, "--format", "csv", "--out", dir)
	wantCode(t, e, 2)
	if !strings.Contains(e.stderr, "is a directory; give a file") {
		t.Errorf("stderr %q", e.stderr)
	}
}

// TestLargeImages: files that are no image, images with other data behind their end and answers without a length are refused
// by their first bytes or their size, without memory of their size.
func TestLargeImages(t *testing.T) {
	skipLong(t)
	t.Parallel()
	const limit = 250 // MiB; the program alone takes about 100
	var picture bytes.Buffer
	must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 64))))
	dir := t.TempDir()
	sparse := func(name string, beginning []byte, size int64) string {
		path := filepath.Join(dir, name)
		write(t, path, beginning)
		must(t, os.Truncate(path, size))
		return path
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		copy(block, picture.Bytes())
		for range 600 {
			if _, err := w.Write(block); err != nil {
				return // refused
			}
			clear(block)
		}
	}))
	t.Cleanup(server.Close)
	const noImage, tooLarge, remote = "not a PNG, JPEG, TIFF, WebP, BMP or GIF image", "too large", 250 << 20 // below the limit of remote files
	files := http.FileServer(http.Dir(dir))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { files.ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	sparse("download", nil, remote)
	write(t, filepath.Join(dir, "list.csv"), []byte("image\n"+web.URL+"/download\n"))
	store := s3test.Start(t, s3test.Options{})
	bucket := store.Bucket(t)
	object := func(name string, beginning []byte) string {
		path := filepath.Join(store.Root, bucket, name)
		write(t, path, beginning)
		must(t, os.Truncate(path, remote))
		return "s3://" + bucket + "/" + name + "?endpoint=" + store.Endpoint
	}
	header := make([]byte, 512)
	shard := bytes.NewBuffer(nil)
	w := tar.NewWriter(shard)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a.png", Size: remote, Mode: 0o644}))
	copy(header, shard.Bytes())
	for path, message := range map[string]string{
		sparse("zeros.png", nil, 900<<20):             noImage,
		sparse("tail.png", picture.Bytes(), 600<<20):  tooLarge,
		sparse("tail2.png", picture.Bytes(), 500<<20): tooLarge,
		server.URL + "/chunked.png":                   tooLarge,
		filepath.Join(dir, "list.csv"):                noImage,
		object("zeros.png", nil):                      noImage,
		object("tail.png", picture.Bytes()):           tooLarge,
		sparse("shard.tar", header, 512+remote+1024):  noImage,
	} {
		e := boundedIn(t, limit, []string{"AWS_ACCESS_KEY_ID=" + store.AccessKey, "AWS_SECRET_ACCESS_KEY=" + store.SecretKey},
			small("--images", path, "--task", "hdr", "--out", t.TempDir(), "--allow-endpoint", store.Endpoint, "--source-cache", "-1",
				"--allow-http", "--allow-network", "127.0.0.0/8")...)
		wantCode(t, e, 3)
		wantMessage(t, e, message)
	}
}

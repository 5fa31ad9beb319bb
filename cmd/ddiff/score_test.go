package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/s3test"
)

// TestScore scores a stored output, and follows the scores to the report, the comparison, a rerun and the passports.
func TestScore(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee", "rocket")
	out := tiny(t, "--images", dir, "--task", "hdr", "--steps", "4", "--size", "32")
	e := ddiff(t, "score", out, "--metric", "psnr,haarpsi")
	wantCode(t, e, 0)
	wantLine(t, e, "metric=psnr@1:png items=2 scored=2 present=0 skipped=0 wrong=0 max_difference=0.0")
	wantLine(t, e, "metric=haarpsi@1:png items=2 scored=2 present=0 skipped=0 wrong=0 max_difference=")
	e = ddiff(t, "score", out, "--metric", "psnr")
	wantCode(t, e, 0)
	wantLine(t, e, "metric=psnr@1:png items=2 scored=0 present=2 skipped=0 wrong=0")
	wantCode(t, ddiff(t, "verify", out), 0)

	e = ddiff(t, "report", out, "--format", "csv")
	if strings.Count(e.stdout, "psnr@1;") != 2 {
		t.Errorf("the report of stored scores is not that of the workers:\n%s", e.stdout)
	}
	e = ddiff(t, "report", out, "--format", "csv", "--metric-version", "psnr@1:png")
	if strings.Count(e.stdout, "psnr@1:png;") != 2 {
		t.Errorf("the chosen version is missing:\n%s", e.stdout)
	}
	wantLine(t, ddiff(t, "report", out, "--metric-version", "haarpsi@1:png"), "Scores computed after solving, from the stored pictures: haarpsi@1:png.")
	e = ddiff(t, "report", out, "--metric-version", "haarpsi@1:png", "--format", "html", "--out", filepath.Join(t.TempDir(), "page"))
	wantCode(t, e, 0)

	again := restore(t, "--images", dir, "--task", "hdr", "--steps", "4", "--size", "32", "--out", out)
	wantCode(t, again, 0)

	b := tiny(t, "--images", dir, "--task", "hdr", "--steps", "8", "--size", "32")
	e = ddiff(t, "compare", out, b, "--metric", "haarpsi")
	wantCode(t, e, 0)
	wantLine(t, e, "problem ")

	// One of several outputs has the property of --where, in any order.
	plain := tiny(t, "--images", dir, "--task", "denoise", "--steps", "2", "--size", "32")
	e = ddiff(t, "score", plain, b, "--metric", "psnr", "--where", "scale=2")
	wantCode(t, e, 0)
	wantLine(t, e, "metric=psnr@1:png items=2 scored=2")
	wantRefusals(t, nil, []refusal{
		{[]string{"score", plain, b, "--where", "gama0=3"}, 2, "gama0: no result has this property"},
		{[]string{"score", b, filepath.Join(out, "missing"), "--metric", "sharpness"}, 2, "no such directory"},
	})
	wantLine(t, ddiff(t, "score", b, "--metric", "sharpness"), "metric=sharpness@1:png items=2 scored=2") // a missing output stops the command at its start
	wantRefusals(t, nil, []refusal{
		{[]string{"score", out, "--metric", "fid"}, 2, `--metric "fid" is none of psnr, ssim, psnr_y, haarpsi`},
		{[]string{"score", filepath.Join(out, "missing")}, 2, "no such directory"},
		{[]string{"score", t.TempDir()}, 2, "no result matches"},
		{[]string{"score", out, "--where", "gama0=3"}, 2, "gama0: no result has this property"},
		{[]string{"report", out, "--metric-version", "psnr@7"}, 2, "no result has a score of psnr@7"},
		{[]string{"report", out, "--metric-version", "psnr"}, 2, "is no id such as psnr@1"},
		{[]string{"compare", out, b, "--metric", "haarpsi@1:png"}, 2, "no result has a score of haarpsi@1:png"},
		{[]string{"compare", out, b, "--metric", "lpips_vgg"}, 2, "no result has a score of lpips_vgg"},
	})

	// A network is a metric of its own; another file is another version.
	lpips := filepath.Join("..", "..", "internal", "restore", "metric", "testdata", "lpips_alex.onnx")
	e = ddiff(t, "score", out, b, "--metric", "lpips:"+lpips, "--json")
	wantCode(t, e, 0)
	var count struct {
		Metric, SHA256 string
		Scored         int
	}
	must(t, json.Unmarshal([]byte(e.stdout), &count))
	if count.Scored != 4 || len(count.SHA256) != 64 || count.Metric != "lpips_alex@1:"+count.SHA256[:8] {
		t.Errorf("count %+v", count)
	}
	e = ddiff(t, "report", out, b, "--format", "csv")
	if lines := strings.Split(e.stdout, "\n"); !strings.Contains(lines[0], ",residual_ratio,lpips_alex,seconds,") || strings.Count(e.stdout, count.Metric) != 4 {
		t.Errorf("no column of the network:\n%s", e.stdout)
	}
	wantLine(t, ddiff(t, "compare", out, b, "--metric", "lpips_alex"), "problem ")
	other := filepath.Join(t.TempDir(), "other.onnx")
	must(t, os.WriteFile(other, onnxtest.WithMetadata(t, read(t, lpips), map[string]string{"ddiff.note": "other weights"}), 0o644))
	wantCode(t, ddiff(t, "score", out, "--metric", "lpips:"+other), 0)
	wantCode(t, ddiff(t, "report", out, "--metric-version", count.Metric), 0)
	wantCode(t, ddiff(t, "compare", out, b, "--metric", count.Metric), 0)
	wantCode(t, ddiff(t, "compare", out, b), 0) // PSNR has one version
	wantRefusals(t, nil, []refusal{
		{[]string{"report", out}, 2, "metric versions of lpips_alex: "},
		{[]string{"compare", out, b, "--metric", "lpips_alex"}, 2, "metric versions of lpips_alex: "},
		{[]string{"score", out, "--metric", "lpips:missing.onnx"}, 2, "lpips:missing.onnx: no such file"},
		{[]string{"score", out, "--metric", "lpips:" + photograph("coffee")}, 7, "coffee.png: unusable ONNX model: not an ONNX file"},
	})
	wantCode(t, restore(t, "--images", dir, "--task", "hdr", "--steps", "4", "--size", "32", "--out", out), 0) // its report is without the network

	damaged, err := filepath.Glob(filepath.Join(b, "items", "*", "truth.png"))
	must(t, err)
	must(t, os.WriteFile(damaged[0], []byte("x"), 0o644))
	e = ddiff(t, "score", b, "--metric", "ssim")
	wantCode(t, e, 3)
	wantLine(t, e, "metric=ssim@1:png items=2 scored=1 present=0 skipped=0 wrong=1")
}

// TestScoreInBucket scores an output in a bucket; pull copies the scores.
func TestScoreInBucket(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	bucket := server.Bucket(t)
	cmd, place := toS3(t, server, bucket, server.SecretKey, small("--images", photographs(t, "chelsea"), "--task", "hdr", "--steps", "4")...)
	wantCode(t, end(t, cmd), 0)
	dir := filepath.Join(t.TempDir(), "copy")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"score", place, "--metric", "haarpsi"}, "metric=haarpsi@1:png items=1 scored=1 present=0 skipped=0 wrong=0"},
		{[]string{"score", place, "--metric", "haarpsi"}, "metric=haarpsi@1:png items=1 scored=0 present=1 skipped=0 wrong=0"},
		{[]string{"pull", place, dir}, "items=1 copied=1"},
		{[]string{"score", dir, "--metric", "haarpsi"}, "metric=haarpsi@1:png items=1 scored=0 present=1 skipped=0 wrong=0"},
	} {
		cmd := command(t, tt.args...)
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+server.AccessKey, "AWS_SECRET_ACCESS_KEY="+server.SecretKey)
		e := end(t, cmd)
		wantCode(t, e, 0)
		wantLine(t, e, tt.want)
	}
}
